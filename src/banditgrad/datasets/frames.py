"""Data files as people have them: what a file holds, and how the text of a table is laid out."""

import csv
import glob
import io
import re
import sys
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from banditgrad._names import is_number
from banditgrad.datasets.svmlight import decompress

LABEL_NAMES = ("label", "target", "class", "y")  # what a label column is called, where the user does not say

STDIN = "-"
SAMPLE_BYTES, SAMPLE_LINES = 2**16, 50  # as much of a text is looked at to guess its layout
SEPARATORS = ("\t", ";", "|", ",")  # of those that fit equally well the first is taken: commas are also in numbers
BLANKS = r"\s+"
MISSING_MARKS = ("?",)  # besides those that pandas knows: empty, NA, N/A, NaN, null, None

_IN_WORDS = {"\t": "tabs", BLANKS: "blanks", ",": "commas", ";": "semicolons", "|": "bars"}
_BY_NAME = {"tab": "\t", r"\t": "\t", "space": BLANKS, "blank": BLANKS, " ": BLANKS}
_TABLES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_ENTRY = re.compile(rb"\s\d+:")  # what only svmlight text has
_WHOLE, _DECIMAL_COMMA = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?\d+,\d+")

# How files begin that hold no table for us, and what they are.
_OTHERS = (
    (b"PK\x03\x04", "a ZIP archive, as .xlsx and .npz files are. Unpack it, or save the table as CSV or Parquet"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook. Save the sheet as CSV"),
    (b"\x93NUMPY", "a NumPy array. Use it from Python, or save it as CSV with numpy.savetxt"),
    (b"\x89HDF", "an HDF5 file. Use it from Python, or save the table as CSV or Parquet"),
    (
        b'{"format": "banditgrad model"',
        "a model of `banditgrad fit`, no data. To use it: banditgrad predict MODEL DATA",
    ),
    (b"{", "JSON. Save the table as CSV or Parquet, with a column for each feature"),
    (b"[", "JSON. Save the table as CSV or Parquet, with a column for each feature"),
    (b"<", "a web page or XML. Perhaps a download failed"),
)


class File(NamedTuple):
    """A file's uncompressed content, and where it comes from."""

    origin: str
    content: bytes


class Frame(NamedTuple):
    """A pandas frame of the columns as they are, whether the file named them, and what was guessed."""

    frame: Any
    header: bool
    notes: list[str]


def open_files(sources: str | PathLike[str] | Iterable[str | PathLike[str]]) -> list[File]:
    """The files that are named: paths, folders of Parquet files, patterns such as ``part-*.parquet``, or "-"."""
    if isinstance(sources, (str, PathLike)):
        sources = [sources]
    return [File(origin, _read(origin)) for source in sources for origin in _expand(str(source))]


def _expand(source: str) -> list[str]:
    if source == STDIN or Path(source).is_file():
        return [source]
    if Path(source).is_dir():
        found = sorted(str(path) for path in Path(source).iterdir() if _TABLES.get(path.suffix.lower()) == "parquet")
        if not found:
            raise IsADirectoryError(f"{source} is a directory without Parquet files. Pass a file.")
        return found
    found = sorted(glob.glob(source))
    if not found:
        raise FileNotFoundError(f"{source} does not exist.")
    return found


def _read(origin: str) -> bytes:
    content = sys.stdin.buffer.read() if origin == STDIN else Path(origin).read_bytes()
    return decompress(content, origin)


def kind_of(file: File) -> str:
    """csv, parquet or svmlight: by the name, or where that does not tell, by how the file begins."""
    path = Path(file.origin)
    name = Path(path.stem if path.suffix in (".gz", ".bz2", ".xz") else path.name)
    if name.suffix.lower() in _TABLES:
        return _TABLES[name.suffix.lower()]
    if file.content.startswith(b"PAR1"):
        return "parquet"
    _refuse_others(file)
    first = file.content[:SAMPLE_BYTES].lstrip().split(b"\n")[0]
    return "csv" if re.search(rb"[,;|\t]", first) and not _ENTRY.search(first) else "svmlight"


def read_frame(
    files: Sequence[File],
    *,
    sep: str | None = None,
    header: bool | None = None,
    na: Sequence[str] = (),
    text: Sequence[str] = (),
    absent: tuple[int, int] | None = None,
) -> Frame:
    """One frame of all files, which must have the same columns.

    Parameters
    ----------
    files : list of File
    sep : str, optional
        What is between the cells; guessed unless given. Also "tab" and "space".
    header : bool, optional
        Whether the first line names the columns; guessed unless given. Columns without names are called 1, 2, ...
    na : list of str
        What stands for a missing value, besides what usually does.
    text : list of str
        Columns that are not looked at as numbers.
    absent : (int, int), optional
        Of a table without names: the number of columns there can be, and the position of the one that may be absent.
    """
    frames = [_frame(file, sep, header, na, text, absent) for file in files]
    first = frames[0]
    if len(frames) == 1:
        return first
    import pandas as pd

    for file, other in zip(files, frames, strict=True):
        odd = sorted(set(first.frame.columns) ^ set(other.frame.columns))
        if odd:
            raise ValueError(
                f"{file.origin} has not the columns of {files[0].origin}: {quoted(odd)} "
                f"{'is' if len(odd) == 1 else 'are'} in one of them only."
            )
    whole = pd.concat([each.frame for each in frames], ignore_index=True)
    return Frame(whole, first.header, [f"{len(files)} files read as one table.", *first.notes])


def quoted(names: Iterable[Any], most: int = 12) -> str:
    """Names for a message, not too many."""
    listed = [repr(str(name)) for name in names]
    return ", ".join(listed[:most]) + (f", ... ({len(listed)} in all)" if len(listed) > most else "")


def _frame(
    file: File,
    sep: str | None,
    header: bool | None,
    na: Sequence[str],
    text: Sequence[str],
    absent: tuple[int, int] | None,
) -> Frame:
    import pandas as pd

    notes: list[str] = []
    if not file.content.strip():
        raise ValueError(f"{file.origin} is empty.")
    try:
        if kind_of(file) == "parquet":
            frame, header = _parquet(file), True
        else:
            _refuse_others(file)
            frame, header, notes = _csv(file, sep, header, na, text, absent)
    except (ValueError, OSError, pd.errors.ParserError) as error:
        raise ValueError(f"{file.origin} is not a readable table: {str(error).strip().removesuffix('.')}.") from error
    frame.columns = [str(name).strip() for name in frame.columns]
    if not isinstance(frame.index, pd.RangeIndex):
        notes.append("The rows' own names (an index without a heading) are left out.")
    return Frame(frame.reset_index(drop=True), header, notes)


def _parquet(file: File) -> Any:
    import pandas as pd

    try:
        return pd.read_parquet(io.BytesIO(file.content))
    except ImportError as error:
        raise ImportError(
            f"{file.origin}: Parquet is read with pyarrow, which is not installed. Run: pip install "
            "'banditgrad[tables]'"
        ) from error


def _csv(
    file: File,
    sep: str | None,
    header: bool | None,
    na: Sequence[str],
    text: Sequence[str],
    absent: tuple[int, int] | None,
) -> tuple[Any, bool, list[str]]:
    import pandas as pd

    encoding, notes = _encoding(file.content)
    lines = _sample(file.content, encoding)
    by_name = "\t" if ".tsv" in Path(file.origin).suffixes else ","
    chosen = _BY_NAME.get(sep, sep) if sep is not None else guess_separator(lines, by_name)
    if sep is None and chosen != by_name:
        notes.append(f"Cells are taken to be separated by {_IN_WORDS[chosen]} (--sep says otherwise).")
    rows = _cells(lines, chosen)
    decimal = "," if chosen != "," and _has_decimal_commas(rows[1:]) else "."
    if decimal == ",":
        notes.append("Numbers such as 1,5 are taken to have decimal commas.")
    named = guess_header(rows) if header is None else header
    if header is None and not named:
        notes.append("The first line is taken as a row, not as names of columns (--header says otherwise).")
    names = None if named else _positions(len(rows[0]), absent)
    frame = pd.read_csv(
        io.BytesIO(file.content),
        sep=chosen,
        header=0 if named else None,
        names=names,
        decimal=decimal,
        skipinitialspace=True,
        na_values=[*MISSING_MARKS, *na],
        dtype=dict.fromkeys(text, str),
        encoding=encoding,
        low_memory=False,
    )
    return frame, named, notes


def _positions(count: int, absent: tuple[int, int] | None) -> list[str]:
    """Names for columns without: 1, 2, ...; where the one that may be absent is, its number is left out."""
    if absent is not None and count == absent[0] - 1:
        return [str(k) for k in range(1, count + 2) if k != absent[1]]
    return [str(k) for k in range(1, count + 1)]


def _refuse_others(file: File) -> None:
    begin = file.content[:64].lstrip()
    for magic, what in _OTHERS:
        if begin.startswith(magic):
            raise ValueError(f"{file.origin} is {what}.")


def _encoding(content: bytes) -> tuple[str, list[str]]:
    """UTF-8 wherever the text is that."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", []
    if b"\x00" in content[:SAMPLE_BYTES]:
        raise ValueError("it holds bytes that are not text")
    try:
        content.decode()
    except UnicodeDecodeError:
        return "cp1252", ["The text is not UTF-8, and is read as Windows-1252."]
    return "utf-8-sig", []


def _sample(content: bytes, encoding: str) -> list[str]:
    """The first lines that are not blank and not cut off."""
    lines = content[:SAMPLE_BYTES].decode(encoding, "ignore").splitlines()
    if len(content) > SAMPLE_BYTES:
        lines = lines[:-1] or lines
    return [line for line in lines if line.strip()][:SAMPLE_LINES]


def _cells(lines: Sequence[str], sep: str) -> list[list[str]]:
    if sep == BLANKS:
        return [line.split() for line in lines]
    if len(sep) != 1:
        raise ValueError(f"the separator must be one character, tab or space, got {sep!r}")
    return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=sep, skipinitialspace=True)]


def guess_separator(lines: Sequence[str], otherwise: str = ",") -> str:
    """What cuts all lines into the same number of cells, or else most of them."""
    shares = {}
    for sep in (*SEPARATORS, BLANKS):
        counts = [len(row) for row in _cells(lines, sep)]
        usual = max(set(counts), key=counts.count)
        if usual > 1:
            shares[sep] = counts.count(usual) / len(counts)
    if BLANKS in shares and len(shares) > 1:  # blanks are also in words
        del shares[BLANKS]
    return max(shares, key=lambda sep: shares[sep], default=otherwise)


def guess_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line names the columns.

    A word above numbers does, a word that comes again below does not. Otherwise cells that come twice are no names, nor
    are fractions; different whole numbers may be: 0, 1, 2, ..., or years.
    """
    first, others = rows[0], rows[1:]
    if any(cell.lower() in LABEL_NAMES for cell in first):
        return True
    for k, cell in enumerate(first):
        below = [row[k] for row in others if k < len(row) and _is_word(row[k]) | _is_number(row[k])]
        if _is_word(cell) and below and (cell in below or all(map(_is_number, below))):
            return cell not in below
    told = [cell for cell in first if cell]
    return len(set(told)) == len(told) and all(map(_WHOLE.fullmatch, filter(_is_number, told)))


def _is_word(cell: str) -> bool:
    return cell not in ("", *MISSING_MARKS) and not _is_number(cell)


def _is_number(cell: str) -> bool:
    return is_number(cell) or bool(_DECIMAL_COMMA.fullmatch(cell))


def _has_decimal_commas(rows: Iterable[Sequence[str]]) -> bool:
    cells = [cell for row in rows for cell in row]
    return any(map(_DECIMAL_COMMA.fullmatch, cells)) and not any(
        "." in cell and "," not in cell and _is_number(cell) for cell in cells
    )
