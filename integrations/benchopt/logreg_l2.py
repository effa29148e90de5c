"""banditgrad in benchmark_logreg_l2: a copy belongs into the `solvers` folder of that benchmark.

It minimises Σ log(1 + exp(-y_i <x_i, β>)) + λ/2 ‖β‖²: n times the mean that `Problem` is, with λ/n in place of λ.
"""
# ruff: noqa: RUF012  # benchopt reads lists from the text

from benchopt import BaseSolver

import banditgrad as bg

SOLVERS = {"auto": "auto", "saga": bg.Saga(), "proxsvrg": bg.ProxSvrg(), "lsvrg": bg.LSvrg()}
SAMPLERS = {"auto": "auto", "uniform": bg.Uniform(), "importance": bg.Importance(), "mabs": bg.Mabs()}


class Solver(BaseSolver):
    name = "banditgrad"
    sampling_strategy = "iteration"  # of one pass over the rows
    install_cmd = "conda"
    requirements = ["pip::banditgrad"]
    parameters = {"solver": ["auto", "saga"], "sampler": ["auto", "mabs"]}
    references = [
        "F. Salehi, L. E. Celis and P. Thiran, 'Stochastic Optimization with Bandit Sampling', arXiv:1708.02544, 2017"
    ]

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        self.X = X.tocsr() if hasattr(X, "tocsr") else X  # columns first is what other solvers like
        self.y, self.intercept, self.penalty = y, fit_intercept, bg.SquaredL2(lmbd / X.shape[0])
        self.run(2)  # compiles

    def run(self, passes):
        problem = bg.Problem(self.X, self.y, bg.Logistic(), self.penalty, fit_intercept=self.intercept)
        result = bg.minimise(problem, SOLVERS[self.solver], SAMPLERS[self.sampler], passes=passes, seed=0)
        self.w = result.w

    def get_result(self):
        return {"beta": self.w}
