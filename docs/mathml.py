"""A hook of mkdocs: formulas between dollar signs become MathML, which browsers draw themselves; nothing is fetched."""

import re
from typing import Any

from latex2mathml.converter import convert

CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
BLOCK = re.compile(r"^\$\$(.+?)\$\$", re.S | re.M)
INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?![$\w])")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page, with its code left alone."""
    parts = CODE.split(markdown)
    parts[::2] = [INLINE.sub(_inline, BLOCK.sub(_block, part)) for part in parts[::2]]
    return "".join(parts)


def _block(found: re.Match[str]) -> str:
    return f"\n<div>{convert(found[1].strip(), display='block')}</div>\n"


def _inline(found: re.Match[str]) -> str:
    return f"<span>{convert(found[1])}</span>"  # at the start of a line <math> alone would begin a block
