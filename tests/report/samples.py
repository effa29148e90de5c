"""Reports of made-up numbers, shaped as real ones are."""

import numpy as np

from banditgrad.report import Claim, Curve, Figure, Panel, Report, Table, Verdict, installed_versions, this_machine

# (name, rate per pass, the noise floor on which it stays)
SAMPLERS = (
    ("uniform", 0.10, 4e-2),
    ("IS", 0.12, 2e-2),
    ("MABS", 0.35, 3e-5),
    ("MABS (δ from the bound)", 0.22, 2e-3),
    ("VRB", 0.30, 1e-4),
    ("RecentNorm", 0.40, 6e-6),
)


def convergence(name, rate, floor, rng, passes=30, repeats=20):
    """Medians and deciles of runs that fall at a rate to a floor."""
    x = np.arange(passes + 1.0)
    noise = np.cumsum(0.08 * rng.standard_normal((repeats, x.size)), axis=1)
    noise[:, 0] = 0.0
    gaps = (0.55 * np.exp(-rate * x) + floor * np.minimum(x, 3) / 3) * np.exp(noise)
    low, median, high = np.quantile(gaps, [0.1, 0.5, 0.9], axis=0)
    return Curve(name, x, median, low, high)


def figure2(seed=0, samplers=SAMPLERS):
    """Six panels like those of the paper's second figure; on ijcnn1 SGD with uniform sampling diverges."""
    rng = np.random.default_rng(seed)
    panels = []
    for data, speed in (("w8a", 1.0), ("ijcnn1", 1.6)):
        for solver, depth in (("SGD", 30.0), ("Prox-SVRG", 0.5), ("SAGA", 0.05)):
            chosen = samplers[:3] if solver == "Prox-SVRG" else samplers
            curves = [convergence(name, speed * rate, depth * floor, rng) for name, rate, floor in chosen]
            if (data, solver) == ("ijcnn1", "SGD"):
                worst = curves[0]
                gone = np.arange(31) >= 18
                curves[0] = Curve(
                    worst.name,
                    worst.x,
                    np.where(gone, np.inf, worst.median),
                    worst.low,
                    np.where(np.arange(31) >= 14, np.inf, worst.high),
                )
            title = f"{solver} on {data}"
            panels.append(
                Panel(f"{solver}-{data}", title, "passes over the data", "F(w) − F*", curves, y_log=True, caption="")
            )
    return Figure(
        "figure2",
        "Figure 2: three solvers on two data sets",
        panels,
        columns=3,
        caption="Medians of 20 runs; the bands hold eight runs in ten.",
    )


def figure1():
    """Two panels over τ, on linear and logarithmic axes."""
    tau = np.geomspace(3.7, 83.9, 8)
    cost = {"uniform": 0.3 * tau**0.9, "IS": 0.5 + 0.02 * tau, "MABS": 1.2 - 0.006 * tau}
    variance = {"uniform": 8 * tau**1.6, "IS": 10 * tau**0.8, "MABS": 12 * tau**0.6}
    panels = [
        Panel(key, title, "τ", label, [Curve(n, tau, v, 0.8 * v, 1.2 * v) for n, v in values.items()], y_log=log)
        for key, title, label, values, log in (
            ("cost", "Cost for different τ", "F(w) − F*", cost, False),
            ("variance", "Effective variance for different τ", "Vₑ", variance, True),
        )
    ]
    return Figure("figure1", "Figure 1: SGD on synthetic ridge regression", panels, columns=2)


def report():
    """A whole report, with every verdict."""
    claims = [
        Claim(
            "MABS comes closest to the minimum for every τ, and improves with τ while uniform sampling degrades.",
            "Closest at 8 of 8 values of τ; F − F* from 1.18 (τ = 3.7) to 0.70 (τ = 83.9), uniform from 0.97 to 16.1.",
            Verdict.HOLDS,
            figure="figure1",
        ),
        Claim(
            "MABS is never suboptimal among the paper's samplers and often significantly better.",
            "Best of the three in 5 of 6 panels; on ijcnn1 with Prox-SVRG it ties with IS within the band.",
            Verdict.HOLDS_PARTLY,
            figure="figure2",
        ),
        Claim("IS is faster than MABS at d = 4000.", "IS 14.2 s, MABS 9.8 s.", Verdict.DOES_NOT_HOLD),
        Claim("With quasi-Newton steps the ratio is 0.6.", "", Verdict.NOT_MEASURED),
    ]
    table = Table(
        "Table 1: the data sets",
        ("data", "n", "d", "τ", "largest row ‖x‖²", "where it comes from"),
        [
            ("synthetic", 101, 5, 83.9, 1520.25, "drawn, seed 0"),
            ("ijcnn1", 49990, 22, 2.615, 4.81, "LIBSVM"),
            ("w8a", 49749, 300, 9.79, 114.0, "LIBSVM"),
        ],
    )
    return Report(
        "The paper's evaluation, recomputed",
        "Every figure and number of section 4, from scratch.\n\nMedians over repeated runs with different seeds.",
        claims,
        [figure1(), figure2()],
        [table],
        {"repeats": 20, "passes": 30, "λ": 1e-4, "step sizes": {"SGD": 1, "Prox-SVRG": 2, "SAGA": 1}},
        this_machine(),
        installed_versions(),
    )


def oddities(log):
    """Panels that are hard to draw, on linear or logarithmic axes."""
    x = np.arange(12.0)
    rng = np.random.default_rng(1)
    long = np.arange(10_000.0)
    holes = np.where(x % 3 == 0, np.nan, x + 1)
    wave = 1.5 + np.sin(long / 700) + 0.1 * rng.standard_normal(long.size)
    curves = {
        "one-point": [Curve("MABS", [3], [2], [1], [4])],
        "one-curve": [Curve("MABS", x, np.exp(-x))],
        "none": [],
        "all-lost": [Curve("uniform", x, np.full(12, np.inf)), Curve("IS", x, np.full(12, np.nan))],
        "holes": [Curve("uniform", x, holes, 0.5 * holes, 2 * holes), Curve("MABS", x[::2], x[::2])],
        "signs": [Curve("MABS", x, 3 - x, 2 - x, 4 - x), Curve("uniform", x, x - 6)],
        "huge": [Curve("uniform", x, 10.0 ** (10 * x)), Curve("IS", x, np.where(x > 6, np.inf, x + 1), x, x + np.inf)],
        "constant": [Curve("MABS", x, np.full(12, 5.0))],
        "many": [Curve(f"sampler {k}", x, (k + 1) * np.exp(-x / (k + 1))) for k in range(20)],
        "long": [Curve("uniform", long, wave, 0.9 * wave, 1.1 * wave), Curve("$\\frac$ 数据 <b>", long, 0.5 * wave)],
    }
    panels = [Panel(key, key, "x", "y", drawn, x_log=log, y_log=log) for key, drawn in curves.items()]
    return Figure("oddities", "Odd data, $5 & <i>more</i>", panels, columns=4)
