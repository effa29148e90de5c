"""Figures in the layout of a paper, as PNG and SVG, with a CSV file per panel."""

import io
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._files import write_atomically
from banditgrad.report import scales
from banditgrad.report.contents import Curve, Figure, Panel
from banditgrad.report.files import panel_csv
from banditgrad.report.palette import Style, assign_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "wedge": "v", "plus": "P", "cross": "X"}
_SETTINGS = {
    "svg.hashsalt": "banditgrad",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
}
_PANEL_INCHES = (3.4, 2.7)
_DOTS_PER_INCH = 144
# More points than this along an axis cannot be told apart in print.
_BINS = 400


def write_figures(figures: Iterable[Figure], folder: str | Path) -> list[Path]:
    """Write `key.png`, `key.svg` and, for each panel, `key-panel.csv`; return the paths.

    The same figures give the same bytes, with the same versions of matplotlib and its fonts.
    """
    figures, folder = list(figures), Path(folder)
    matplotlib = _matplotlib()
    styles = assign_styles(curve for figure in figures for curve in figure.curves)
    written = []
    for figure in figures:
        with _our_settings(matplotlib):
            canvas = _draw(figure, styles)
            written.append(write_atomically(folder / f"{figure.key}.png", _png(canvas)))
            written.append(write_atomically(folder / f"{figure.key}.svg", _svg(canvas)))
        for panel in figure.panels:
            written.append(write_atomically(folder / f"{figure.key}-{panel.key}.csv", panel_csv(panel)))
    return written


def draw_figure(figure: Figure) -> "Canvas":
    """The figure as one of matplotlib's, to look at in a notebook or to save."""
    with _our_settings(_matplotlib()):
        return _draw(figure, assign_styles(figure.curves))


@contextmanager
def _our_settings(matplotlib: Any) -> Iterator[None]:
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        # A data set's name may be in any script; a glyph that the font lacks is shown as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _matplotlib():
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "Figures are drawn with matplotlib, which is not installed. Run: pip install 'banditgrad[viz]'"
        ) from error
    return matplotlib


def _draw(figure: Figure, styles: dict[str, Style]) -> "Canvas":
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    handles = [_line(curve, styles[curve.name], label=_text(curve.name)) for curve in figure.curves]
    legend_columns = max(1, min(len(handles), 2 * columns))
    legend_rows = -(-len(handles) // legend_columns)
    remarks = [_remarks(panel) for panel in figure.panels]
    remark_rows = sum(max(map(len, remarks[row * columns :][:columns])) for row in range(rows))
    width = columns * _PANEL_INCHES[0]
    height = rows * _PANEL_INCHES[1] + 0.17 * remark_rows + 0.2 * legend_rows + 0.5
    canvas = Canvas(figsize=(max(width, 4.0), height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06))
    canvas.suptitle(_text(figure.title), fontsize=11)
    for index, panel in enumerate(figure.panels):
        axes = canvas.add_subplot(rows, columns, index + 1)
        letter = f"({chr(ord('a') + index)}) " if 1 < len(figure.panels) <= 26 else ""
        axes.set_title(_text(letter + panel.title))
        axes.set(xlabel=_text("\n".join([panel.x_label, *remarks[index]])), ylabel=_text(panel.y_label))
        _draw_panel(axes, panel, styles)
    if handles:
        canvas.legend(
            handles=handles, loc="outside lower center", ncols=legend_columns, frameon=False, handlelength=3.2
        )
    return canvas


def _remarks(panel: Panel) -> list[str]:
    return [line for note in scales.notes(panel) for line in textwrap.wrap(note, 42)]


def _draw_panel(axes: "Axes", panel: Panel, styles: dict[str, Style]) -> None:
    floors = scales.floors(panel)
    points = [_clipped(curve, floors) for curve in panel.curves]
    x_limits, y_limits = _limits(panel, points)
    axes.set(xscale="log" if panel.x_log else "linear", yscale="log" if panel.y_log else "linear")
    axes.set(xlim=x_limits, ylim=y_limits)
    for axis, ends, log in ((axes.xaxis, x_limits, panel.x_log), (axes.yaxis, y_limits, panel.y_log)):
        if log:
            _label_logarithms(axis, *ends)
    diverged = 0
    for curve, all_points in zip(panel.curves, points, strict=True):
        style = styles[curve.name]
        x, median, low, high = _thinned(all_points, panel.x_log)
        line = _line(curve, style)
        line.set_data(x, np.where(np.isfinite(median), median, np.nan))
        line.set_markevery(max(1, x.size // 8) if x.size > 16 else 1)
        axes.add_line(line)
        if curve.low is not None:
            # An infinite end of the band lies beyond the axis, where it is cut.
            low, high = (np.clip(end, *_beyond(y_limits, panel.y_log)) for end in (low, high))
            axes.fill_between(x, low, high, color=style.colour, alpha=0.15, linewidth=0.8)
        if (infinite := median == np.inf).any():
            top = np.where(infinite, 0.985 - 0.03 * diverged, np.nan)
            axes.plot(x, top, color=style.colour, linewidth=1, transform=axes.get_xaxis_transform())
            first = infinite.argmax()
            axes.plot(x[first], top[first], "x", color=style.colour, transform=axes.get_xaxis_transform(), zorder=4)
            diverged += 1


def _label_logarithms(axis: "Axis", low: float, high: float) -> None:
    """Powers of ten where the axis spans some; else 1, 2, 5, ...; else what a linear axis has."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axis.set_minor_formatter(NullFormatter())
    if high < 80 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high > 4 * low else MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _line(curve: Curve, style: Style, label: str = "") -> "Line2D":
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        color=style.colour,
        linewidth=2.4 if curve.emphasised else 1.4,
        linestyle=(0, style.dash) if style.dash else "-",
        marker=_MARKERS[style.marker],
        markersize=4.5,
        markeredgewidth=0,
        label=label,
    )


def _clipped(curve: Curve, floors: tuple[float | None, float | None]) -> NDArray[np.float64]:
    """x, median, low, high with what is below the floors put on them."""
    points = scales.drawable(curve.points)
    for rows, floor in zip((slice(0, 1), slice(1, 4)), floors, strict=True):
        if floor is not None:
            points[rows] = np.maximum(points[rows], floor)
    return points


def _limits(panel: Panel, points: list[NDArray[np.float64]]) -> tuple[tuple[float, float], tuple[float, float]]:
    x = np.concatenate([rows[0] for rows in points]) if points else np.empty(0)
    y = np.concatenate([rows[1:].ravel() for rows in points]) if points else np.empty(0)
    y = y[np.isfinite(y)]
    if panel.y_min is not None:
        y = np.maximum(y, panel.y_min)
    if panel.y_max is not None:
        y = np.minimum(y, panel.y_max)
    return scales.limits(x, panel.x_log, margin=0.02), scales.limits(y, panel.y_log, margin=0.06)


def _beyond(ends: tuple[float, float], log: bool) -> tuple[float, float]:
    low, high = ends
    return (low / 10, high * 10) if log else (2 * low - high, 2 * high - low)


def _thinned(points: NDArray[np.float64], log: bool) -> NDArray[np.float64]:
    """The points that matter in print: in each of many bins along x the first, the last, the least and the greatest."""
    x, median = points[0], points[1]
    if x.size <= 2 * _BINS:
        return points
    place = np.log(x) if log else x
    bins = (_BINS * (place - place[0]) / (place[-1] - place[0])).astype(int)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    ends = np.append(starts[1:], x.size) - 1
    order = np.lexsort((median, bins))  # within a bin from the least to the greatest, NaN last
    keep = np.unique(np.concatenate([starts, ends, order[starts], order[ends]]))
    return points[:, keep]


def _text(words: str) -> str:
    """Words as they are: a dollar sign would begin a formula."""
    return words.encode("utf-8", "replace").decode().replace("$", r"\$")


def _png(canvas: "Canvas") -> bytes:
    """With a palette of 128 colours: a third of the size, and no difference to the eye."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas.set_dpi(_DOTS_PER_INCH)
    agg = FigureCanvasAgg(canvas)
    agg.draw()
    image = Image.fromarray(np.asarray(agg.buffer_rgba())).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    content = io.BytesIO()
    image.save(content, "PNG", optimize=True)
    return content.getvalue()


def _svg(canvas: "Canvas") -> bytes:
    content = io.BytesIO()
    canvas.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    return content.getvalue()
