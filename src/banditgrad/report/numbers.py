"""How a page writes numbers: in its tables as in its charts, where assets/scales.js does the same."""

import math

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def formatted(value: float, digits: int = 3) -> str:
    """1.5, 3.2×10⁻⁷; a dash for what is no number."""
    if not math.isfinite(value):
        return "–"
    if value == 0.0 or 1e-3 <= abs(value) < 1e5:
        return f"{float(f'{value:.{digits}g}'):.15g}".replace("-", "−")
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    front = f"{float(mantissa):g}×" if abs(float(mantissa)) != 1.0 else mantissa[: mantissa.startswith("-")]
    return f"{front}10".replace("-", "−") + str(int(exponent)).translate(_RAISED)
