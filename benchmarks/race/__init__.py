"""A race against the peers: seconds to F − F* ≤ 1e-3, 1e-4, 1e-6 and 1e-8.

    problems.py     data sets × objectives
    contenders/     one small function per contender
    optimum.py      F*, certified by a duality gap
    measure.py      workers, clocks, and the search for the least effort that reaches each accuracy
    results.py      what was measured, in a CSV file, and who is first
    display.py      tables for the terminal and for the docs, and the figure

One thread each: the variables below are read when the libraries are first imported, so this package comes before them.
"""

import os

for _variable in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA"):
    os.environ.setdefault(f"{_variable}_NUM_THREADS", "1")
