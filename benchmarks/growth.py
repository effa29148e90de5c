"""How time and memory grow with n, training from a file larger than the memory allowed, and import and compile times.

Every figure comes from a fresh process; seconds are those of the processor, all of `minimise` counted.

    python benchmarks/growth.py [--rows 1e4 1e5 1e6 1e7] [--gigabytes 2] [--out out/bench]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

# NumPy and banditgrad are imported in the functions: some of the jobs measure just that.

COLUMNS = 256  # of the memory-mapped file
ALLOWED = 512  # MB of memory that training on it may take
PASSES = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--gigabytes", type=float, default=2.0, help="size of the memory-mapped file")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where CSV files go")
    options = parser.parse_args()
    from race.display import keep

    tables = {
        "start-up": start_up,
        "growth": lambda: growth([int(n) for n in options.rows]),
        "memory-map": lambda: memory_map(options.gigabytes),
    }
    for name, make in tables.items():
        table = make()
        Console(width=110).print(table)
        keep(table, options.out / f"{name}.csv")


def fresh(job, *arguments, **environment):
    """Run one of the jobs below in a process of its own; its last line is its answer."""
    command = [sys.executable, __file__, "--job", job, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def growth(sizes):
    table = Table(title=f"Growth with n: 10 non-zeros per row, {PASSES} passes, all defaults", title_justify="left")
    for column in (
        "n",
        "data, MB",
        "Problem, s",
        "seconds per pass",
        "ns per step",
        "peak besides data, MB",
        "bytes per row",
    ):
        table.add_column(column, justify="right")
    for n in sizes:
        got = min((fresh("grow", n) for _ in range(2)), key=lambda got: got["seconds"])  # the first may compile
        table.add_row(
            f"{n:.0e}",
            f"{got['data'] / 1e6:.0f}",
            f"{got['setup']:.3f}",
            f"{got['seconds'] / PASSES:.3g}",
            f"{got['seconds'] / PASSES / n * 1e9:.0f}",
            f"{got['extra'] / 1e6:.0f}",
            f"{got['extra'] / n:.0f}",
        )
    return table


def memory_map(gigabytes):
    n = int(gigabytes * 1e9 / (4 * COLUMNS))
    title = f"A file of {gigabytes:g} GB with {ALLOWED} MB allowed besides what the libraries take"
    table = Table(title=title, title_justify="left")
    for column in ("limit", "outcome", "memory of its own, MB", "pages of the file, MB", "s per pass"):
        table.add_column(column, justify="left" if column in ("limit", "outcome") else "right")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.npy")
        _write_rows(path, n)
        for limit in ("DATA", "AS"):
            name = {"DATA": "memory (ulimit -d)", "AS": "addresses (ulimit -v)"}[limit]
            got = fresh("map", path, limit)
            if "failure" in got:
                table.add_row(name, got["failure"][:40], "", "", "")
            else:
                figures = (f"{got[key]:.0f}" for key in ("own", "file"))
                table.add_row(
                    name, f"F from {got['before']:.3f} to {got['after']:.3f}", *figures, f"{got['seconds']:.2f}"
                )
    return table


def _write_rows(path, n, block=100_000):
    import numpy as np

    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, COLUMNS))
    for begin in range(0, n, block):
        rows[begin : begin + block] = rng.standard_normal((min(block, n - begin), COLUMNS), dtype=np.float32) / 16
    rows.flush()


def start_up():
    table = Table(title="Start: processor seconds in a fresh process", title_justify="left")
    for column in ("", "seconds"):
        table.add_column(column, justify="left" if not column else "right")
    for modules in ("numpy", "numba", "sklearn.linear_model", "banditgrad", "banditgrad.linear_model"):
        table.add_row(f"import {modules}", f"{min(fresh('import', modules)['seconds'] for _ in range(3)):.2f}")
    with tempfile.TemporaryDirectory() as cache:
        for kind in ("sparse", "dense"):
            for state in ("compiled for the first time", "from the cache"):
                got = fresh("first", kind, NUMBA_CACHE_DIR=cache)
                table.add_row(f"first fit on {kind} rows, {state}", f"{got['seconds']:.2f}")
    return table


def job_grow(n):
    import banditgrad as bg

    bg.minimise(bg.Problem(*_sparse(200), bg.Logistic(), bg.L1(1e-4)), passes=1, seed=0)  # loads what is compiled
    X, y = _sparse(int(n))
    data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    _reset_peak()
    before = _status("VmRSS")
    begin = time.process_time()
    problem = bg.Problem(X, y, bg.Logistic(), bg.L1(1e-4))
    setup = time.process_time() - begin
    begin = time.process_time()
    bg.minimise(problem, passes=PASSES, record_every=PASSES, seed=0)
    seconds = time.process_time() - begin
    return {"data": data, "setup": setup, "seconds": seconds, "extra": (_status("VmHWM") - before) * 1024}


def _sparse(n):
    import banditgrad as bg

    return bg.datasets.make_imbalanced(n, 1000, 10, seed=0)


def job_map(path, limit):
    import numpy as np

    import banditgrad as bg

    warm = np.ones((64, COLUMNS), np.float32)
    small = bg.Problem(warm, np.ones(64), bg.Logistic(), bg.SquaredL2(1e-4))
    bg.minimise(small, passes=1, seed=0)  # compiles: its memory is not that of training
    taken = _status({"DATA": "VmData", "AS": "VmSize"}[limit])  # by libraries and the compiler
    allowed = ALLOWED * 2**20 + taken * 1024
    resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (allowed, allowed))
    X = np.load(path, mmap_mode="r")
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = bg.Problem(X, y, bg.Logistic(), bg.SquaredL2(1e-4))
    before = problem.value(np.zeros(COLUMNS))
    begin = time.process_time()
    result = bg.minimise(problem, passes=PASSES, record_every=PASSES, seed=0)
    seconds = time.process_time() - begin
    return {
        "before": before,
        "after": result.value,
        "own": _status("RssAnon") / 1024,
        "file": _status("RssFile") / 1024,
        "seconds": seconds / PASSES,
    }


def job_import(module):
    begin = time.process_time()
    __import__(module)
    return {"seconds": time.process_time() - begin}


def job_first(kind):
    import banditgrad as bg

    X, y = _sparse(1000)
    X = X.toarray() if kind == "dense" else X
    begin = time.process_time()
    bg.minimise(bg.Problem(X, y, bg.Logistic(), bg.L1(1e-4)), passes=1, seed=0)
    return {"seconds": time.process_time() - begin}


def _status(field):
    """A line of /proc/self/status, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _reset_peak():
    """Let VmHWM begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


JOBS = {"grow": job_grow, "map": job_map, "import": job_import, "first": job_first}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        print(json.dumps(JOBS[sys.argv[2]](*sys.argv[3:])))
    else:
        main()
