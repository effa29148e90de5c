"""Data on which steps go wrong."""

from functools import cache

import numpy as np

import banditgrad as bg


def hard_problems():
    """Data on which a step chosen from L, or by hand, goes wrong."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1.0, -1.0)
    return {
        "unscaled columns": bg.Problem(X * 10.0 ** np.arange(-2, 2, 0.5), y, penalty=bg.SquaredL2(1e-2)),
        "rows that differ a thousandfold": bg.Problem(
            X * 10.0 ** rng.uniform(-1.5, 1.5, 300)[:, None], y, penalty=bg.SquaredL2(1e-2)
        ),
        "tiny n": bg.Problem(X[:3], [1.0, -1.0, 1.0], penalty=bg.SquaredL2(1e-1)),
        "one row": bg.Problem(X[:1], [1.0], penalty=bg.SquaredL2(1e-1)),
        "n < d": bg.Problem(rng.standard_normal((20, 100)), y[:20], penalty=bg.L1(1e-1)),
        "collinear columns": bg.Problem(np.hstack([X, X, X[:, :1]]), y, penalty=bg.SquaredL2(1e-2)),
        "constant columns": bg.Problem(np.hstack([X, np.full((300, 2), 30.0)]), y, penalty=bg.SquaredL2(1e-2)),
        "one positive in a hundred": bg.Problem(X, np.where(np.arange(300) % 100 == 0, 1.0, -1.0), penalty=bg.L1(1e-3)),
        "one class": bg.Problem(X, np.ones(300), penalty=bg.SquaredL2(1e-1)),
        "one huge row": bg.Problem(np.vstack([X, 1e3 * X[:1]]), np.r_[y, -y[0]], bg.SquaredHinge(), bg.SquaredL2(1e-1)),
        "large targets": bg.Problem(X, 1e6 * X[:, 0] + 1e5, bg.Squared(), fit_intercept=True),
        "rows of zeros": bg.Problem(np.where(np.arange(300)[:, None] % 3, X, 0.0), y, penalty=bg.L1(1e-2)),
        "nothing but zeros": bg.Problem(np.zeros((5, 2)), [1.0, -1.0, 1.0, 1.0, -1.0], penalty=bg.L1(1e-2)),
        "no penalty": bg.Problem(X, X[:, 1] + 0.1 * rng.standard_normal(300), bg.Huber()),
    }


@cache
def hard_minimum(case):
    problem = hard_problems()[case]
    return problem.value(minimiser(problem))


def minimiser(problem):
    """Accelerated proximal gradient descent with restarts, to the last digit."""
    step = 1.0 / max(float(np.mean(problem.smoothness)), 1e-300)
    w = v = np.zeros(problem.dimension)
    t = 1.0
    for _ in range(30_000):
        moved = v - step * problem.gradient_mapping(v, step)
        if np.linalg.norm(moved - v) < 1e-15:
            return moved
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        if (v - moved) @ (moved - w) > 0:
            t_next = t = 1.0
        v, w, t = moved + (t - 1) / t_next * (moved - w), moved, t_next
    return w
