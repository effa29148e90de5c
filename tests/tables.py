"""The parts under test: a new loss, penalty or sampler is one row here."""

import banditgrad as bg

LOSSES = {"Logistic": bg.Logistic(), "SquaredHinge": bg.SquaredHinge(), "Squared": bg.Squared(), "Huber": bg.Huber()}
PENALTIES = {
    "Zero": bg.Zero(),
    "L1": bg.L1(0.03),
    "SquaredL2": bg.SquaredL2(0.05),
    "ElasticNet": bg.ElasticNet(0.06, 0.4),
}
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
