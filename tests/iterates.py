"""The path of a run, where its result would be the best point on it."""

import banditgrad as bg


def last_iterate(problem, solver, sampler="auto", **options):
    """w after the last step."""
    seen = []
    bg.minimise(problem, solver, sampler, callback=lambda progress: seen.append(progress.w), **options)
    return seen[-1]
