"""The command is killed, or told to stop, while it works; started again, it ends as if nothing had been."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

# Where the tests run in the background, SIGINT may be ignored, which a child inherits.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import banditgrad.cli as c; c.main()"
)
ARGUMENTS = ["paper", "figure1", "--quick", "--repeats", "60", "--jobs", "2", "--out"]


def start(out):
    command = [sys.executable, "-c", PROGRAM, *ARGUMENTS, str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(out):
    process = start(out)
    words, _ = process.communicate(timeout=300)
    assert process.returncode == 0, words


def stored(out):
    connection = sqlite3.connect(out / "runs.sqlite")
    rows = connection.execute("SELECT key, settings, outcome FROM outcomes ORDER BY key").fetchall()
    connection.close()
    return rows


def count(out):
    try:
        connection = sqlite3.connect(f"file:{out / 'runs.sqlite'}?mode=ro", uri=True)
        (number,) = connection.execute("SELECT count(*) FROM outcomes").fetchone()
        connection.close()
    except sqlite3.OperationalError:  # not there yet
        return 0
    return number


def wait_for(process, out, number):
    """Until so many outcomes are kept, or the command ends first."""
    while count(out) < number and process.poll() is None:
        time.sleep(0.005)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    finish(out)
    return out


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_killed_at_random_points_it_ends_with_the_same_bits(undisturbed, tmp_path):
    whole = stored(undisturbed)
    chance = random.Random()
    killed = 0
    for _ in range(3):
        process = start(tmp_path)
        wait_for(process, tmp_path, count(tmp_path) + chance.randrange(1, len(whole) // 4))
        time.sleep(chance.uniform(0.0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        assert set(stored(tmp_path)) <= set(whole)
    assert killed >= 2
    finish(tmp_path)
    assert stored(tmp_path) == whole
    for path in undisturbed.iterdir():
        if path.suffix in (".csv", ".md", ".png", ".svg", ".html"):
            assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_told_to_stop_it_says_so_and_keeps_what_is_done(tmp_path):
    process = start(tmp_path)
    wait_for(process, tmp_path, 20)
    process.send_signal(signal.SIGINT)
    words, _ = process.communicate(timeout=60)
    assert process.returncode == 130, words
    assert "goes on from there" in words
    assert "Traceback" not in words
    assert count(tmp_path) >= 20
