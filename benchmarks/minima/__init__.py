"""Does every fit reach the minimum? The parts of benchmarks/zoo.py.

problems.py     losses × penalties on the data sets
fits.py         who fits: the defaults, the estimators, every solver; what is kept of a fit
optimum.py      F*, certified by a duality gap or by a second opinion
faults.py       what is wrong with a fit: stalls, explosions, false reasons
journal.py      all of it as lines of JSON, so that a run that was stopped goes on
"""
