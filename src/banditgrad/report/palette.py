"""One colour, dash pattern and marker per sampler, the same in every figure.

The colours are those of Okabe and Ito, made to be told apart by the colour-blind; dashes and markers tell the curves
apart in grey.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from banditgrad.report.contents import Curve


@dataclass(frozen=True)
class Style:
    """`dash` are lengths of line and gap in line widths, empty for a solid line."""

    colour: str
    dash: tuple[float, ...]
    marker: str

    @property
    def dark_colour(self) -> str:
        """The colour on a dark ground."""
        return {BLACK: "#F2F2F2", BLUE: "#2B8FD6"}.get(self.colour, self.colour)


BLACK, BLUE, VERMILION, ORANGE = "#000000", "#0072B2", "#D55E00", "#E69F00"
GREEN, PURPLE, SKY = "#009E73", "#CC79A7", "#56B4E9"
SOLID, DASHED, DOTTED, DASH_DOT = (), (5.0, 2.0), (1.2, 1.6), (6.0, 1.8, 1.2, 1.8)

SAMPLERS = {
    "uniform": Style(BLACK, DASHED, "square"),
    "importance": Style(BLUE, DASH_DOT, "triangle"),
    "mabs": Style(VERMILION, SOLID, "circle"),
    "mabs (δ from the bound)": Style(ORANGE, DASHED, "diamond"),
    "vrb": Style(GREEN, SOLID, "wedge"),
    "recentnorm": Style(PURPLE, DASH_DOT, "plus"),
    "auto": Style(SKY, SOLID, "cross"),
}
ALIASES = {"is": "importance", "importance (is)": "importance"}

_COLOURS = (SKY, PURPLE, GREEN, ORANGE, BLUE, VERMILION, BLACK)
_MARKERS = ("circle", "square", "triangle", "diamond", "wedge", "plus", "cross")
_DASHES = (SOLID, DASHED, DOTTED, DASH_DOT)
# 4 and 7 have no common factor: 28 pairs, and neighbours differ in both.
_PATTERNS = tuple((_DASHES[k % 4], _MARKERS[k % 7]) for k in range(28))


def assign_styles(curves: Iterable[Curve]) -> dict[str, Style]:
    """The style of each name: a sampler's own, else the colour and the pattern least used, in order of appearance."""
    first: dict[str, Curve] = {}
    for curve in curves:
        first.setdefault(curve.name, curve)
    styles = {name: known for name, curve in first.items() if curve.like is None and (known := _sampler_style(name))}
    for name, curve in first.items():
        if name not in styles:
            taken = list(styles.values())
            sampler = _sampler_style(curve.like or "")
            if sampler and sampler not in taken:
                styles[name] = sampler
                continue
            colour = sampler.colour if sampler else min(_COLOURS, key=[style.colour for style in taken].count)
            dash, marker = min(_PATTERNS, key=[(style.dash, style.marker) for style in taken].count)
            styles[name] = Style(colour, dash, marker)
    return {name: styles[name] for name in first}


def _sampler_style(name: str) -> Style | None:
    name = name.casefold()
    return SAMPLERS.get(ALIASES.get(name, name))
