"""What does sampling save in training networks? The parts of benchmarks/torch_study.py.

tasks.py        data, model, loss and feedback, one small function each
infobatch.py    the best-known rival, from its paper
contenders.py   who draws the batches
training.py     one run: a schedule that decays to zero, evaluations, CPU seconds, the meter
journal.py      runs as lines of JSON, so that a study that was stopped goes on
verdict.py      what a contender's end is worth in samples of plain shuffling
"""
