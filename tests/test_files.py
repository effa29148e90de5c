"""Writing files whole."""

import os
import threading

import pytest

from banditgrad._files import write_atomically


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    for content in (b"old", b"new"):
        write_atomically(tmp_path / "folder" / "file", content)
    assert (tmp_path / "folder" / "file").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["file"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_atomically(tmp_path / "pipe", b"content")
    reader.join()
    assert read == [b"content"]
    assert (tmp_path / "pipe").is_fifo()
