"""`banditgrad warmup`: compile once what most runs need."""

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from banditgrad import inspection
from banditgrad.cli import options, screen
from banditgrad.datasets import make_imbalanced
from banditgrad.problem import Problem
from banditgrad.registry import make_loss, make_penalty


class Kind(NamedTuple):
    """A kind of data and of model, for which loops are compiled."""

    words: str
    X: Any
    loss: str

    def fit(self) -> None:
        """Small fits that go through all that a large one would."""
        from banditgrad.linear_model import BanditClassifier, BanditRegressor

        y = np.asarray(self.X @ np.linspace(-1.0, 1.0, self.X.shape[1])).ravel()
        classify = self.loss == "log_loss"
        for penalty in ("l2", "l1"):
            model = (BanditClassifier if classify else BanditRegressor)(self.loss, penalty=penalty, random_state=0)
            model.fit(self.X, y > np.median(y) if classify else y)
        target = np.where(y > np.median(y), 1.0, -1.0) if classify else y
        problem = Problem(self.X, target, make_loss(self.loss), make_penalty("l2", 1e-4, 0.0), fit_intercept=True)
        inspection.inspect(problem, passes=2)


def kinds() -> Iterator[Kind]:
    """The common ones."""
    tall, _ = make_imbalanced(2000, 60, 8, seed=0)
    wide, _ = make_imbalanced(300, 4000, 20, seed=0)
    dense = np.random.default_rng(0).standard_normal((2000, 20))
    for loss, model in (("log_loss", "classes"), ("squared_error", "numbers")):
        for X, rows in ((dense, "dense"), (tall, "sparse"), (wide, "sparse and wide")):
            yield Kind(f"{model} from {rows} rows", sp.csr_array(X) if sp.issparse(X) else X, loss)


def warmup(json: options.Json = False) -> None:
    """Compile the common loops once, so that the first fits start at once.

    What is compiled is kept on disk, and serves all later processes of this user. A minute or two; where all is
    there already, seconds.

    **Examples**

    `banditgrad warmup`
    """
    begin = time.perf_counter()
    done: dict[str, float] = {}
    with warnings.catch_warnings(), screen.working("compiling") as say:
        warnings.simplefilter("ignore")  # of fits that are cut short
        for kind in kinds():
            say(f"compiling for {kind.words}")
            with screen.watch_compiler(lambda: None) as compiled:
                kind.fit()
                done[kind.words] = compiled()
    seconds = time.perf_counter() - begin
    if json:
        screen.print_json({"seconds": seconds, "seconds_compiling": done})
        return
    for words, spent in done.items():
        screen.out.print(f"{words:32} {'was there already' if spent < 0.05 else f'{spent:.1f} s of compiling'}")
    screen.out.print(f"Done in {seconds:.0f} s: fits like these now start at once.")
