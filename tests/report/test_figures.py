import csv
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from banditgrad.report import Curve, Figure, Panel, write_figures
from banditgrad.report.figures import _thinned
from report import samples


def test_files_of_the_papers_figure(tmp_path):
    figure = samples.figure2()
    written = write_figures([figure], tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["figure2.png", "figure2.svg"] + [
        f"figure2-{solver}-{data}.csv" for data in ("w8a", "ijcnn1") for solver in ("SGD", "Prox-SVRG", "SAGA")
    ]
    assert sorted(written[0].parent.iterdir()) == sorted(written)
    assert written[0].stat().st_size < 150_000
    with Image.open(written[0]) as image:
        pixels = np.asarray(image.convert("RGB"))
    # MABS' vermilion is in each of the six panels
    rows, columns, _ = pixels.shape
    vermilion = np.abs(pixels.astype(int) - [0xD5, 0x5E, 0x00]).max(axis=2) < 12
    for row in (slice(0, rows // 2), slice(rows // 2, rows)):
        for part in range(3):
            assert vermilion[row, part * columns // 3 : (part + 1) * columns // 3].sum() > 200


def test_the_same_bytes_again(tmp_path):
    first, second = (write_figures([samples.figure1()], tmp_path / name) for name in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert b"date" not in first[1].read_bytes().lower()


def test_the_csv_of_a_panel(tmp_path):
    curves = [Curve('a, "b"', [0, 2], [0.1, np.inf], [0, 1], [1, np.nan]), Curve("c", [1, 2], [5, 6])]
    *_, path = write_figures([Figure("f", "t", [Panel("p", "t", "x", "y", curves)])], tmp_path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["x", 'a, "b" median', 'a, "b" low', 'a, "b" high', "c median", "c low", "c high"],
        ["0.0", "0.1", "0.0", "1.0", "", "", ""],
        ["1.0", "", "", "", "5.0", "5.0", "5.0"],
        ["2.0", "inf", "1.0", "", "6.0", "6.0", "6.0"],
    ]


@pytest.mark.parametrize("log", [False, True])
def test_odd_panels_are_drawn(tmp_path, log):
    figure = samples.oddities(log)
    png, svg, *tables = write_figures([figure], tmp_path)
    assert len(tables) == len(figure.panels)
    assert png.stat().st_size > 1000
    assert svg.stat().st_size < 2_000_000
    ElementTree.parse(svg)


def test_thinning_keeps_ends_and_extremes():
    x = np.arange(10_000.0)
    y = np.sin(x)
    y[5_003], y[7_001] = 9.0, -9.0
    thin = _thinned(np.array([x, y, y, y]), log=False)
    assert thin.shape[1] < 2000
    assert {0.0, 5_003.0, 7_001.0, 9_999.0} <= set(thin[0])
    assert np.all(np.diff(thin[0]) > 0)


def test_without_matplotlib_the_error_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'banditgrad\[viz\]'"):
        write_figures([samples.figure1()], tmp_path)
    assert not list(tmp_path.iterdir())
