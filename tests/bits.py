"""The bits of w for each solver, sampler and penalty: what a change that keeps the mathematics must not change.

python tests/bits.py            compares all cases with bits.json (minutes, where all is to be compiled)
python tests/bits.py Saga       those whose name has the given words
python tests/bits.py --write    renews bits.json, after a change that is meant; say in its message why
python tests/bits.py --add      keeps what other machines recorded of the same sources, and adds this one
"""

import argparse
import hashlib
import json
import platform
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm
import numba
import numpy as np
import scipy
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import banditgrad as bg
from iterates import last_iterate
from tables import LOSSES, PENALTIES

FILE = Path(__file__).with_name("bits.json")
SOLVERS = {
    "Sgd": bg.Sgd(),
    "Sgd(linear)": bg.Sgd(bg.InverseTime(0.1), average="linear", batch_size=3),
    "ProxSgd": bg.ProxSgd(),
    "ProxSgd(shifted)": bg.ProxSgd(bg.ShiftedInverseTime(50.0, 0.05)),
    "Sqn": bg.Sqn(batch_size=10, hessian_batch_size=40),
    "Saga": bg.Saga(),
    "Saga(0.02)": bg.Saga(0.02),
    "ProxSvrg": bg.ProxSvrg(),
    "ProxSvrg(last)": bg.ProxSvrg(0.02, snapshot="last"),
    "S2gd": bg.S2gd(nu=0.1),
    "LSvrg": bg.LSvrg(),
}
SAMPLERS = {
    "Uniform": bg.Uniform(),
    "Importance": bg.Importance(),
    "Mabs": bg.Mabs(),
    "Mabs(smoothness)": bg.Mabs(mix="smoothness"),
    "Auto": bg.Auto(),
    "Vrb": bg.Vrb(),
    "RecentNorm": bg.RecentNorm(),
}


class Case(NamedTuple):
    rows: str
    loss: str
    penalty: str
    solver: bg.Solver
    sampler: bg.Sampler

    def digest(self) -> str:
        X, y = data(self.rows)
        problem = bg.Problem(X, y, LOSSES[self.loss], PENALTIES[self.penalty], fit_intercept=self.rows == "sparse")
        with threadpool_limits(1):  # the order of BLAS' sums depends on its threads
            w = last_iterate(problem, self.solver, self.sampler, passes=6, seed=3)
        return hashlib.sha256(w.tobytes()).hexdigest()[:16]


def cases() -> dict[str, Case]:
    """Each solver with each sampler on both kinds of rows, and each of the three with every penalty (not every one of
    the four together, which would take half an hour to compile); SampledNewton, which has more ways than one, with all
    losses, penalties and shapes."""
    made = {}
    for a, (solver, method) in enumerate(SOLVERS.items()):
        for b, (sampler, draws) in enumerate(SAMPLERS.items()):
            for c, rows in enumerate(("dense", "sparse")):
                penalty = list(PENALTIES)[(a + b + 2 * c) % len(PENALTIES)]
                made[f"{solver} {sampler} {penalty} {rows}"] = Case(rows, "Logistic", penalty, method, draws)
    for rows in ("dense", "sparse", "wide", "wide sparse"):
        for loss in LOSSES:
            for penalty in PENALTIES:
                name = f"SampledNewton {loss} {penalty} {rows}"
                made[name] = Case(rows, loss, penalty, bg.SampledNewton(), bg.Uniform())
    return made


def chosen_cases() -> list[str]:
    """The part that the tests compare: every solver is there, each time with other draws, rows and penalties."""
    return list(cases())[:: 2 * len(SAMPLERS) + 1]


@cache
def data(rows: str):
    n, d = (150, 400) if rows.startswith("wide") else (600, 12)
    rng = np.random.default_rng(11)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.2 if "sparse" in rows else 0.7)
    X *= np.exp(0.7 * rng.standard_normal(n))[:, None]
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)
    return (sp.csr_array(X) if "sparse" in rows else X), y


def signature() -> dict[str, str]:
    """What the bits may depend on beside the sources: compilers make other code for other processors."""
    features = hashlib.sha256(llvm.get_host_cpu_features().flatten().encode()).hexdigest()[:16]
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": llvm.get_host_cpu_name(),
        "processor features": features,
        "numba": numba.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def recorded() -> list[dict[str, dict[str, str]]]:
    """For each machine that the bits were recorded on its signature, "machine", and the "bits" of every case."""
    return json.loads(FILE.read_text())


def recorded_here() -> dict[str, str] | None:
    """The bits of every case as recorded on a machine like this one, if they were."""
    here = signature()
    return next((each["bits"] for each in recorded() if each["machine"] == here), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="compare cases whose name has all of these")
    parser.add_argument("--write", action="store_true", help="renew bits.json")
    parser.add_argument("--add", action="store_true", help="add this machine to bits.json")
    arguments = parser.parse_args()
    chosen = {name: case for name, case in cases().items() if all(word in name.split() for word in arguments.words)}
    if arguments.write or arguments.add:
        others = [each for each in recorded() if arguments.add and each["machine"] != signature()]
        bits = {name: case.digest() for name, case in cases().items()}
        FILE.write_text(json.dumps([*others, {"machine": signature(), "bits": bits}], indent=1) + "\n")
        return
    bits = recorded_here()
    if bits is None:
        sys.exit(f"bits.json has no {signature()}. Add this machine from the old sources: python tests/bits.py --add")
    changed = [name for name, case in chosen.items() if print(name) or case.digest() != bits.get(name)]
    print(f"{len(chosen)} cases, {len(changed)} changed", *changed, sep="\n  ")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
