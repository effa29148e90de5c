"""One self-contained HTML page: claims, interactive charts, tables, settings.

Words are written here as escaped HTML; the charts are drawn by the scripts in `assets` from the data, which the page
carries as JSON. A policy in the page's head lets no other script run and nothing be fetched.
"""

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._files import write_atomically
from banditgrad.report import scales
from banditgrad.report.contents import Cell, Claim, Curve, Figure, Panel, Report, Table, Verdict
from banditgrad.report.numbers import formatted
from banditgrad.report.palette import Style, assign_styles

_BADGES = {
    Verdict.HOLDS: ("yes", "✓"),
    Verdict.HOLDS_PARTLY: ("partly", "◐"),
    Verdict.DOES_NOT_HOLD: ("no", "✗"),
    Verdict.NOT_MEASURED: ("open", "–"),
}
_HINT = """<p class="hint">Point at a chart to read values, drag across it to zoom, double-click to go back; click a
name to switch its curve off or on. With the keyboard: arrow keys read values, Escape goes back.</p>
<noscript><p>The charts need JavaScript.</p></noscript>
"""


def write_html(report: Report, path: str | Path) -> Path:
    """Write the report as one page that opens from disk, without network."""
    return write_atomically(Path(path), _page(report).encode("utf-8", "replace"))


def _page(report: Report) -> str:
    style = _asset("page.css")
    script = '"use strict";\n' + "".join(map(_asset, ("elements.js", "scales.js", "chart.js", "page.js")))
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    title = escape(report.title)
    sections = [
        _section("terms", "What is compared", _pairs(report.terms)),
        _claims(report.claims, {figure.key: figure.title for figure in report.figures}),
        *(_figure(number, figure) for number, figure in enumerate(report.figures)),
        *(_section("", table.title, _table(table)) for table in report.tables),
        '<div class="facts">\n',
        _section("settings", "Settings", _pairs(report.settings)),
        _section("machine", "Machine", _pairs(report.machine)),
        _section("versions", "Versions", _pairs(report.versions)),
        "</div>",
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{"".join(f"<p>{escape(paragraph)}</p>" for paragraph in report.summary.split(chr(10) * 2) if paragraph.strip())}
{f'<p class="verdict">{escape(report.verdict)}</p>' if report.verdict else ""}
</header>
<main>
{"".join(sections)}
</main>
<script type="application/json" id="data">{_json(report)}</script>
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return files("banditgrad.report").joinpath("assets", name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _section(key: str, title: str, content: str) -> str:
    anchor = f' id="{key}"' if key else ""
    return f"<section{anchor}>\n<h2>{escape(title)}</h2>\n{content}\n</section>\n" if content else ""


def _claims(claims: Sequence[Claim], figures: Mapping[str, str]) -> str:
    if not claims:
        return ""
    counts = Counter(claim.verdict for claim in claims)
    tally = " ".join(_badge(verdict, f"{counts[verdict]} × ") for verdict in Verdict if counts[verdict])
    items = []
    for claim in claims:
        link = f' <a href="#{claim.figure}">{escape(figures[claim.figure])}</a>' if claim.figure else ""
        measured = f'<p class="measured"><b>Measured:</b> {escape(claim.measured)}{link}</p>' if claim.measured else ""
        items.append(f"<li><div><p>{escape(claim.statement)}</p>{measured}</div>{_badge(claim.verdict)}</li>\n")
    return _section("claims", "Claims", f'<p class="tally">{tally}</p><ol class="claims">\n{"".join(items)}</ol>')


def _badge(verdict: Verdict, count: str = "") -> str:
    kind, sign = _BADGES[verdict]
    return f'<span class="badge {kind}"><span aria-hidden="true">{sign}</span> {count}{verdict.value}</span>'


def _figure(number: int, figure: Figure) -> str:
    panels = "".join(_panel(f"{number}-{place}", panel) for place, panel in enumerate(figure.panels))
    columns = min(figure.columns, len(figure.panels), 4)
    return _section(
        figure.key,
        figure.title,
        f"{_paragraph('caption', figure.caption)}{_HINT if number == 0 else ''}"
        f'<div class="legend" data-figure="{number}" role="group" aria-label="Curves"></div>'
        f'<div class="panels columns-{columns}">\n{panels}</div>',
    )


def _panel(place: str, panel: Panel) -> str:
    remarks = "".join(_paragraph("note", note) for note in scales.notes(panel))
    return (
        f'<figure class="panel" id="panel-{place}"><div class="heading"><h3>{escape(panel.title)}</h3>'
        '<button type="button" class="reset" hidden>Reset zoom</button></div>'
        f'<p class="axis">{escape(panel.y_label)}{" (log)" if panel.y_log else ""}</p>'
        f'<div class="chart" data-place="{place}"></div>'
        f'<p class="axis across">{escape(panel.x_label)}{" (log)" if panel.x_log else ""}</p>'
        f"<figcaption>{_paragraph('caption', panel.caption)}{remarks}</figcaption></figure>\n"
    )


def _paragraph(kind: str, words: str) -> str:
    return f'<p class="{kind}">{escape(words)}</p>' if words else ""


def _table(table: Table) -> str:
    numeric = [all(not isinstance(row[at], str) for row in table.rows) for at in range(len(table.header))]
    kinds = [' class="number"' if number else "" for number in numeric]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, table.header, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{kind}>{_cell(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>\n"
        for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>'
        f"{_paragraph('caption', table.caption)}"
    )


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return formatted(float(value))


def _pairs(values: Mapping[str, object]) -> str:
    if not values:
        return ""
    rows = "".join(f"<dt>{escape(str(name))}</dt><dd>{_value(value)}</dd>\n" for name, value in values.items())
    return f"<dl>\n{rows}</dl>"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return _pairs(value)
    if isinstance(value, list | tuple):
        return escape(", ".join(map(str, value)))
    return escape(str(value))


def _json(report: Report) -> str:
    """The charts' data. Characters that could end the script element are written as escapes."""
    styles = assign_styles(curve for figure in report.figures for curve in figure.curves)
    content = [_figure_data(figure, styles) for figure in report.figures]
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _figure_data(figure: Figure, styles: dict[str, Style]) -> dict[str, Any]:
    places = {curve.name: place for place, curve in enumerate(figure.curves)}
    return {
        "curves": [_legend_data(curve, styles[curve.name]) for curve in figure.curves],
        "panels": [_panel_data(panel, places) for panel in figure.panels],
    }


def _legend_data(curve: Curve, style: Style) -> dict[str, Any]:
    return {
        "name": curve.name,
        "light": style.colour,
        "dark": style.dark_colour,
        "dash": style.dash,
        "marker": style.marker,
        "width": 3 if curve.emphasised else 1.8,
    }


def _panel_data(panel: Panel, places: dict[str, int]) -> dict[str, Any]:
    x_floor, y_floor = scales.floors(panel)
    grids: list[list[Any]] = []  # curves mostly share their x, which is then stored once
    curves = []
    for curve in panel.curves:
        x, median, low, high = (_numbers(row) for row in scales.drawable(curve.points))
        if x not in grids:
            grids.append(x)
        band = {} if curve.low is None else {"low": low, "high": high}
        curves.append({"id": places[curve.name], "grid": grids.index(x), "median": median, **band})
    return {
        "label": f"{panel.title}: {panel.y_label} against {panel.x_label}",
        "x": {"label": panel.x_label, "log": panel.x_log, "floor": x_floor},
        "y": {"log": panel.y_log, "floor": y_floor, "min": panel.y_min, "max": panel.y_max},
        "grids": grids,
        "curves": curves,
    }


def _numbers(values: NDArray[np.float64]) -> list[float | str | None]:
    """Six digits are more than a chart shows. JSON has no NaN and no infinity."""
    return [
        float(f"{value:.6g}") if math.isfinite(value) else None if math.isnan(value) else str(value)
        for value in values.tolist()
    ]
