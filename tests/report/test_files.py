"""Writing files whole."""

import os
import threading

import numpy as np
import pytest

from banditgrad.report.contents import Curve, Panel
from banditgrad.report.files import csv_text, panel_csv, write_atomically


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    for content in (b"old", b"new"):
        write_atomically(tmp_path / "folder" / "file", content)
    assert (tmp_path / "folder" / "file").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["file"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_atomically(tmp_path / "pipe", b"content")
    reader.join()
    assert read == [b"content"]
    assert (tmp_path / "pipe").is_fifo()


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
