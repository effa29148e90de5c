"""Finding, downloading and verifying sets; downloads come from a server on this machine."""

import bz2
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pooch
import pytest

import banditgrad as bg
from banditgrad.datasets import libsvm, load

TEXT = b"".join(b"%d 1:%d 3:0.5\n" % (1 - 2 * (k % 2), k) for k in range(500))
SHA256 = hashlib.sha256(TEXT).hexdigest()
DAMAGED = TEXT.replace(b"77", b"78", 1)
PACKED = bz2.compress(TEXT)


class Server(ThreadingHTTPServer):
    """Serves what is in `files`; a file in `cut` ends before its announced length."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.cut, self.requests = {}, {}, []
        self.url = f"http://127.0.0.1:{self.server_port}/sets"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/sets/")
        self.server.requests.append(name)
        if name not in self.server.files:
            self.send_error(404)
            return
        content = self.server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: self.server.cut.get(name)])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache, no other folder, and two sets in the registry: "plain", and "packed" that is served as .bz2."""
    monkeypatch.delenv("BANDITGRAD_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setitem(libsvm.SOURCES, "plain", libsvm.Source("plain", SHA256))
    monkeypatch.setitem(libsvm.SOURCES, "packed", libsvm.Source("packed.bz2", SHA256))
    folder = pooch.os_cache("banditgrad")
    assert folder.is_relative_to(tmp_path)
    return folder


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*"))


@pytest.mark.parametrize(("name", "served"), [("plain", TEXT), ("packed", PACKED)])
def test_a_set_is_downloaded_once(name, served, server, cache):
    server.files[libsvm.SOURCES[name].served] = served
    for _ in range(2):
        found = load(name, mirror=server.url)
        assert found.name == name
        assert found.X.shape == (500, 3)
        assert found.X[:, [0]].toarray().ravel().tolist() == list(range(500))
        assert found.y.tolist() == [1.0, -1.0] * 250
    assert server.requests == [libsvm.SOURCES[name].served]
    assert files_in(cache) == [name]
    assert (cache / name).read_bytes() == TEXT
    assert repr(found) == f"Dataset({name}: 500 x 3, 1000 stored)"


@pytest.mark.parametrize(
    ("name", "served", "cut", "reason"),
    [
        ("plain", DAMAGED, None, "SHA-256"),
        ("plain", TEXT[:-7], None, "SHA-256"),
        ("plain", b"", None, "SHA-256"),
        ("plain", b"<html>We have moved</html>", None, "SHA-256"),
        ("plain", TEXT, 1000, ""),
        ("packed", PACKED[:-50], None, "is damaged"),
        ("packed", PACKED[:60] + b"spam" + PACKED[64:], None, "is damaged"),
        ("packed", bz2.compress(DAMAGED), None, "SHA-256"),
        ("packed", PACKED, 100, ""),
    ],
)
@pytest.mark.parametrize("before", [None, b"an old, bad file"])
def test_a_bad_download_leaves_the_cache_as_it_was(name, served, cut, reason, before, server, cache):
    file = libsvm.SOURCES[name].served
    server.files[file], server.cut[file] = served, cut
    if before:
        cache.mkdir(parents=True)
        (cache / name).write_bytes(before)
    with pytest.raises(OSError, match=rf"Could not get the set {name} from {server.url}/{file}: .*{reason}") as caught:
        load(name, mirror=server.url)
    assert f"put it, as {name} or {file}, into a folder that BANDITGRAD_DATA names" in str(caught.value)
    assert str(cache / name) in str(caught.value)
    assert files_in(cache) == ([name] if before else [])
    assert before is None or (cache / name).read_bytes() == before


def test_a_bad_file_in_the_cache_is_replaced(server, cache):
    cache.mkdir(parents=True)
    (cache / "plain").write_bytes(DAMAGED)
    server.files["plain"] = TEXT
    assert load("plain", mirror=server.url).X.shape == (500, 3)
    assert (cache / "plain").read_bytes() == TEXT


def test_no_network_and_no_file_say_where_to_put_it(server, cache):
    with pytest.raises(OSError, match=r"404[\s\S]*put it, as packed or packed.bz2"):
        load("packed", mirror=server.url)
    with pytest.raises(OSError, match=r"Could not get the set plain from http://127.0.0.1:9[\s\S]*put it, as plain"):
        load("plain", mirror="http://127.0.0.1:9/")  # nobody listens on port 9
    assert files_in(cache) == []


def test_a_cache_that_cannot_be_made_is_named(server, cache):
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_bytes(b"a file where the folder should be")
    server.files["plain"] = TEXT
    with pytest.raises(OSError, match="Could not get the set plain") as caught:
        load("plain", mirror=server.url)
    assert str(cache) in str(caught.value)


def test_folders_are_searched_in_order(server, cache, monkeypatch, tmp_path):
    given, named = tmp_path / "given", tmp_path / "named"
    given.mkdir()
    named.mkdir()
    monkeypatch.setenv("BANDITGRAD_DATA", str(named))
    (named / "packed.bz2").write_bytes(PACKED)
    assert load("packed", mirror=server.url).X.shape == (500, 3)
    assert load("packed", given, mirror=server.url).X.shape == (500, 3)
    (given / "packed").write_bytes(DAMAGED)
    assert load("packed", mirror=server.url).X.shape == (500, 3)
    with pytest.raises(ValueError, match=r"given/packed is not the set packed: its text has another SHA-256"):
        load("packed", given, mirror=server.url)
    (given / "packed").write_bytes(TEXT)
    (named / "packed.bz2").unlink()
    assert load("packed", str(given), mirror=server.url).X.shape == (500, 3)
    assert server.requests == []
    server.files["packed.bz2"] = PACKED
    assert load("packed", mirror=server.url).X.shape == (500, 3)
    assert server.requests == ["packed.bz2"]


def test_wrong_names_and_folders(tmp_path):
    with pytest.raises(ValueError, match="no set 'w9a'; there are w8a, ijcnn1, a9a"):
        load("w9a")
    with pytest.raises(NotADirectoryError, match="folder must be an existing folder"):
        load("w8a", tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "shape", "stored", "positive", "tau"),
    [
        ("w8a", (49749, 300), 579586, 1479, 9.785),
        ("ijcnn1", (49990, 22), 649870, 4853, 2.615),
        ("a9a", (32561, 123), 451592, 7841, 1.01),
    ],
)
def test_the_real_sets_are_those_of_the_paper(name, shape, stored, positive, tau, real_data):
    real_data(name)  # or skip
    found = load(name)
    assert found.X.shape == shape
    assert found.X.nnz == stored
    assert (found.X.data.dtype, found.X.indices.dtype, found.X.indptr.dtype) == (np.float64, np.int32, np.int32)
    assert sorted(set(found.y.tolist())) == [-1.0, 1.0]
    assert np.sum(found.y == 1.0) == positive
    assert bg.Problem(found.X, found.y).tau == pytest.approx(tau, abs=6e-3)
