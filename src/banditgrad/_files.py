"""Files that are there whole or not at all."""

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> Path:
    """Write to a file beside it and rename: a reader, or a crash, never meets half a file.

    A link stays a link, and its target is written; what is no regular file, such as a pipe, is written to directly.
    """
    if path.is_symlink():
        write_atomically(path.resolve(), content)
        return path
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return path
