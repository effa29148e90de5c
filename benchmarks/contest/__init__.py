"""Samplers beside each other: solvers × data × objectives, what they reach and cost, and whether it is chance."""
