"""Samplers beside each other: solvers × data × objectives, what they reach, what they cost, and whether it is chance."""
