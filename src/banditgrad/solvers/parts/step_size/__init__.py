"""Rules that find the step size while running, and a limit on it.

smoothness  of variance-reduced methods: over the smoothness that draws show
distance    of SGD and its kin: distance over gradients, or a given schedule
stability   a limit from rows that draws show too late
"""
