"""The paper's real sets and a9a, from the LIBSVM data page."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.datasets.svmlight import decompress, parse

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
FOLDER_VARIABLE = "BANDITGRAD_DATA"


class Source(NamedTuple):
    """A file as it is served, perhaps compressed, and the SHA-256 of its uncompressed text."""

    served: str
    sha256: str


SOURCES = {
    "w8a": Source("w8a", "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2"),
    # all 49,990 training rows; ijcnn1.tr and ijcnn1.val on the same page are parts of them
    "ijcnn1": Source("ijcnn1.bz2", "16506cad788cf7c9607454150ed1994788204bac2ff4c9cb3b320036b6950d3f"),
    "a9a": Source("a9a", "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows X (CSR, float64, int32 indices), labels y (-1 and +1) and the name of the set."""

    X: Any
    y: NDArray[np.float64]
    name: str

    def __repr__(self) -> str:
        return f"Dataset({self.name}: {self.X.shape[0]} x {self.X.shape[1]}, {self.X.nnz} stored)"


def load(name: str, folder: str | os.PathLike[str] | None = None, *, mirror: str = LIBSVM) -> Dataset:
    """The set `name`: "w8a", "ijcnn1" or "a9a", the training files of the LIBSVM data page.

    The file is looked for in `folder`, then in the folder that the environment variable ``BANDITGRAD_DATA`` names,
    then in the cache of this machine (``pooch.os_cache("banditgrad")``), and is else downloaded to this cache.
    Wherever it comes from, the SHA-256 of its text is that of the set, so results are of the same data everywhere.

    Parameters
    ----------
    name : str
        Which set.
    folder : path, optional
        A folder that may have the file, under the name of the set or as it is served (``ijcnn1.bz2``).
    mirror : str
        Where to download from, the address of the folder that serves the files.

    Raises
    ------
    ValueError
        For an unknown name, or a file in one of the folders that is not the set.
    OSError
        If the file cannot be downloaded or comes damaged. The cache is then as it was.
    """
    if name not in SOURCES:
        raise ValueError(f"There is no set {name!r}; there are {', '.join(SOURCES)}. For a file use read_svmlight.")
    if folder is not None and not Path(folder).is_dir():
        raise NotADirectoryError(f"folder must be an existing folder, got {str(folder)!r}.")
    text, origin = _from_folders(name, folder) or _from_cache(name) or _download(name, mirror)
    X, y, _ = parse(text, origin, zero_based=False)
    return Dataset(X, y, name)


def _from_folders(name: str, folder: str | os.PathLike[str] | None) -> tuple[bytes, str] | None:
    for place in (folder, os.environ.get(FOLDER_VARIABLE)):
        for file in (name, SOURCES[name].served):
            if place and (path := Path(place, file)).is_file():
                text = decompress(path.read_bytes(), str(path))
                if not _is_genuine(text, name):
                    raise ValueError(
                        f"{path} is not the set {name}: its text has another SHA-256. Remove it to have the set "
                        "downloaded, or read it as it is with read_svmlight."
                    )
                return text, str(path)
    return None


def _from_cache(name: str) -> tuple[bytes, str] | None:
    path = _cache() / name
    if path.is_file() and _is_genuine(text := path.read_bytes(), name):
        return text, str(path)
    return None


def _download(name: str, mirror: str) -> tuple[bytes, str]:
    """Fetch, uncompress and verify beside the cache's file, then move into its place in one step."""
    import pooch  # here and below, where it is used: importing banditgrad should not wait for it

    url = mirror.rstrip("/") + "/" + SOURCES[name].served
    path = _cache() / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as workshop:
            fresh = Path(workshop, "fresh")
            pooch.HTTPDownloader(chunk_size=2**16)(url, str(fresh), None)
            text = decompress(fresh.read_bytes(), url)
            if not _is_genuine(text, name):
                raise ValueError(f"{url} is not the set, or is damaged: its text has another SHA-256.")
            fresh.write_bytes(text)
            os.replace(fresh, path)
    except (OSError, ValueError) as error:
        raise OSError(
            f"Could not get the set {name} from {url}: {error}\nDownload it by other means and put it, as {name} or "
            f"{SOURCES[name].served}, into a folder that {FOLDER_VARIABLE} names or that is passed as `folder`; "
            f"or uncompressed to {path}."
        ) from error
    return text, str(path)


def _cache() -> Path:
    import pooch

    return Path(pooch.os_cache("banditgrad"))


def _is_genuine(text: bytes, name: str) -> bool:
    return hashlib.sha256(text).hexdigest() == SOURCES[name].sha256
