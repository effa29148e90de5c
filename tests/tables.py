"""The parts under test: a new loss, penalty or sampler is one row here."""

import numpy as np

import banditgrad as bg

LOSSES = {"Logistic": bg.Logistic(), "SquaredHinge": bg.SquaredHinge(), "Squared": bg.Squared(), "Huber": bg.Huber()}
PENALTIES = {
    "Zero": bg.Zero(),
    "L1": bg.L1(0.03),
    "SquaredL2": bg.SquaredL2(0.05),
    "ElasticNet": bg.ElasticNet(0.06, 0.4),
}


def structured(d):
    """Penalties that know which of d features a coordinate is. Those within others are all elastic nets: what compiled
    code is made for are classes."""
    factors, groups = np.arange(d) % 3 / 2.0, np.arange(d) // 3
    return {
        "Weighted(L1)": bg.Weighted(bg.ElasticNet(0.03, 1.0), factors),
        "Weighted(SquaredL2)": bg.Weighted(bg.ElasticNet(0.05, 0.0), factors),
        "Weighted(ElasticNet)": bg.Weighted(bg.ElasticNet(0.06, 0.4), factors),
        "Box": bg.Box(-0.1, np.linspace(0.0, 0.3, d), bg.ElasticNet(0.0)),
        "Box(L1)": bg.Box(0.0, penalty=bg.ElasticNet(0.01, 1.0)),
        "Box(Weighted)": bg.Box(-0.2, 0.2, bg.Weighted(bg.ElasticNet(0.03, 0.5), factors)),
        "GroupLasso": bg.GroupLasso(groups, 0.03),
        "GroupLasso(weights)": bg.GroupLasso([[0, d - 1], [2, 3]], 0.05, [0.5, 2.0]),
        "SparseGroupLasso": bg.SparseGroupLasso(groups, 0.05, 0.4),
    }


STRUCTURED = tuple(structured(6))
SAMPLERS = {
    "Uniform": bg.Uniform(),
    "Importance(smoothness)": bg.Importance(),
    "Importance(gradient_bound)": bg.Importance(by="gradient_bound"),
    "Mabs": bg.Mabs(),
    "Mabs(delta=bound)": bg.Mabs(delta="bound"),
    "Mabs(delta=float)": bg.Mabs(delta=1e-5),
    "Mabs(mix=bounds)": bg.Mabs(mix="bounds", delta="bound", relax=2.0),
    "Mabs(mix=smoothness)": bg.Mabs(mix="smoothness"),
    "Mabs(reset_every)": bg.Mabs(reset_every=10_000),
    "Auto": bg.Auto(),
    "Vrb": bg.Vrb(),
    "RecentNorm": bg.RecentNorm(),
    "RecentNorm(mix=smoothness)": bg.RecentNorm(mix="smoothness"),
    "EmaNorm": bg.EmaNorm(),
    "ForgettingMabs": bg.ForgettingMabs(),
    "Osmd": bg.Osmd(),
    "AdaOsmd": bg.AdaOsmd(),
    "Avare": bg.Avare(),
    "SafeBounds": bg.SafeBounds(),
    "Tracking": bg.Tracking(),
}
