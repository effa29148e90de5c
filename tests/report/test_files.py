"""CSV files."""

import numpy as np

from banditgrad.report.contents import Curve, Panel
from banditgrad.report.files import csv_text, panel_csv


def test_no_text_in_a_csv_file_is_a_formula():
    rows = [["=1+1", -2.5, "-2.5"], ["@SUM(A1)", 3, "+1"], ["-x", "\tx", "+x"], ["a=b", "", "é"]]
    assert csv_text(["=a", "b", "c"], rows).split("\n") == [
        "'=a,b,c",
        "'=1+1,-2.5,-2.5",
        "'@SUM(A1),3,+1",
        "'-x,'\tx,'+x",
        "a=b,,é",
        "",
    ]


def test_a_curves_name_in_a_csv_file_is_not_a_formula():
    curve = Curve("=SUM(1)", [-1.0, 2.0], [-0.5, np.nan])
    header, *rows = panel_csv(Panel("key", "title", "x", "y", [curve])).decode().splitlines()
    assert header == "x,'=SUM(1) median,'=SUM(1) low,'=SUM(1) high"
    assert rows == ["-1.0,-0.5,-0.5,-0.5", "2.0,,,"]
