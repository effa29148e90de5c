"""What one draw + probability + update costs: our weighted sampler, a Fenwick tree, the bare arithmetic and the floor.

One process, contenders interleaved, minima over rounds: only ratios within one run mean anything.

    floor        a uniform index, one read, one write
    arithmetic   a uniform index, then p_i and the update of w_i and W: what is left if drawing were free
    tree         the same step on a Fenwick tree of linear weights, O(log n) as the paper has it
    weighted          the same step on the structure banditgrad uses, one draw at a time
    blocks         the same, 128 draws at a time and then their updates, as solvers do it

"Piling up" multiplies the drawn weight by exp(x) for a constant x, so that few items soon hold everything; the tree,
whose linear weights overflow, sits that out.
"""

import argparse
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import banditgrad as bg
from banditgrad._jit import bridge, inline
from banditgrad._random import below, new_stream, peek, skip, unit
from banditgrad.samplers.blocks import new_block
from banditgrad.samplers.floors import EvenFloor, mixed_draws
from banditgrad.samplers.weighted import fill, new_weighted_sampler
from race.display import keep

ETA = 0.4
STEPS = 200_000
BLOCK = 128


@bridge
class Fenwick(NamedTuple):
    """A binary indexed tree over n weights (its size is a power of two)."""

    tree: np.ndarray
    weights: np.ndarray

    def tree_pick(self, u):
        half, position = self.tree.size >> 1, 0
        u *= self.tree[self.tree.size - 1]
        while half > 0:
            if self.tree[position + half - 1] <= u:
                u -= self.tree[position + half - 1]
                position += half
            half >>= 1
        return min(position, self.weights.size - 1)

    def tree_add(self, i, x):
        self.weights[i] += x
        i += 1
        while i <= self.tree.size:
            self.tree[i - 1] += x
            i += i & -i


def fenwick(weights):
    tree = np.zeros(1 << max(1, math.ceil(math.log2(len(weights)))))
    tree[: len(weights)] = weights
    level = 1
    while level < tree.size:  # each node adds the sum of its left sibling
        tree[2 * level - 1 :: 2 * level] += tree[level - 1 : -level : 2 * level]
        level *= 2
    return Fenwick(tree, weights.copy())


@inline
def _dose(strength, cubic, n_p):
    return min(strength / (n_p * n_p * n_p), 1.0) if cubic else strength


@bg.kernel
def floor_steps(array, stream, steps):
    for _ in range(steps):
        i = np.int64(below(peek(stream, 0), np.uint64(array.size)))
        skip(stream, 1)
        array[i] += 1.0


@bg.kernel
def arithmetic_steps(array, stream, steps, strength, cubic):
    n, total = array.size, float(array.size)
    for _ in range(steps):
        i = np.int64(below(peek(stream, 0), np.uint64(n)))
        skip(stream, 1)
        p = (1.0 - ETA) * array[i] / total + ETA / n
        x = _dose(strength, cubic, n * p)
        w = array[i] * math.exp(x)
        total += w - array[i]
        array[i] = w if w < 2.0 else 0.5 * w


@bg.kernel
def tree_steps(fenwick, stream, steps, strength, cubic):
    n = fenwick.weights.size
    for _ in range(steps):
        coin, u = unit(peek(stream, 0)), peek(stream, 1)
        skip(stream, 2)
        i = np.int64(below(u, np.uint64(n))) if coin < ETA else fenwick.tree_pick(unit(u))
        p = (1.0 - ETA) * fenwick.weights[i] / fenwick.tree[fenwick.tree.size - 1] + ETA / n
        x = _dose(strength, cubic, n * p)
        fenwick.tree_add(i, fenwick.weights[i] * math.expm1(x))


@bg.kernel
def weighted_steps(weighted, stream, steps, strength, cubic):
    n = weighted.where.size
    for _ in range(steps):
        i = weighted.pick(stream, ETA)
        p = (1.0 - ETA) * weighted.share(i) + ETA / n
        x = _dose(strength, cubic, n * p)
        weighted.multiply(i, math.exp(x))


@bg.kernel
def block_steps(weighted, floor, block, stream, steps, strength, cubic):
    for _ in range(steps // block.i.size):
        mixed_draws(floor, weighted, stream, ETA, block)
        for t in range(block.i.size):
            block.other[t] = math.exp(_dose(strength, cubic, block.n * block.p[t]))
        weighted.multiply_many(block, block.i.size)


def lognormal(rng, n):
    return np.exp(2.0 * rng.standard_normal(n))


def few_heavy(rng, n):
    """Ten items hold 99.9 percent."""
    weights = np.ones(n)
    weights[rng.integers(0, n, 10)] = 100.0 * n
    return weights


# name: weights to begin with; x = strength / (n p)³ as in MABS, or x = strength at every draw
REGIMES = {
    "near-uniform": (lambda rng, n: np.full(n, 1.75), 1e-3, True),
    "heavy tail": (lognormal, 1e-3, True),
    "few heavy": (few_heavy, 1e-3, True),
    "piling up 0.01": (lognormal, 0.01, False),
    "piling up 0.1": (lognormal, 0.1, False),
    "piling up 1": (lognormal, 1.0, False),
}


def measure(n, regime, rounds):
    weights, strength, cubic = REGIMES[regime]
    weights = weights(np.random.default_rng(0), n)
    weighted, other_sampler, tree, stream = (
        new_weighted_sampler(n),
        new_weighted_sampler(n),
        fenwick(weights),
        new_stream(0),
    )
    fill(weighted, weights)
    fill(other_sampler, weights)
    floor, block = EvenFloor(1.0 / n), new_block(n, BLOCK)
    runs = {
        "floor": lambda: floor_steps(weights, stream, STEPS),
        "arithmetic": lambda: arithmetic_steps(weights, stream, STEPS, strength, cubic),
        "tree": lambda: tree_steps(tree, stream, STEPS, strength, cubic),
        "single": lambda: weighted_steps(weighted, stream, STEPS, strength, cubic),
        "blocks": lambda: block_steps(other_sampler, floor, block, stream, STEPS, strength, cubic),
    }
    if not cubic:
        del runs["tree"]
    best = dict.fromkeys(runs, math.inf)
    for _ in range(rounds + 1):  # the first round compiles and warms up
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            elapsed = (time.perf_counter() - begin) / STEPS * 1e9
            best[name] = min(best[name], elapsed)
    return best, sum(array.nbytes for array in weighted) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e3, 5e4, 1e6, 1e7, 1e8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where a CSV file goes")
    options = parser.parse_args()
    table = Table(title="Nanoseconds per draw + probability + update", title_justify="left")
    contenders = ("floor", "arithmetic", "tree", "single", "blocks")
    columns = ("n", "weights", *contenders, "blocks/tree", "blocks/arithmetic", "bytes/item")
    for column in columns:
        table.add_column(column, justify="left" if column == "weights" else "right")
    for n in map(int, options.sizes):
        for regime in REGIMES:
            best, size = measure(n, regime, options.rounds)
            times = [f"{best[name]:.1f}" if name in best else "-" for name in contenders]
            ratios = [
                f"{best['blocks'] / best[name]:.2f}" if "tree" in best else "-" for name in ("tree", "arithmetic")
            ]
            table.add_row(f"{n:.0e}", regime, *times, *ratios, f"{size:.1f}")
        table.add_section()
    Console(width=110).print(table)
    keep(table, options.out / "draws.csv")


if __name__ == "__main__":
    main()
