"""Mistakes that people make: each error says what was wrong, what was got and what to do.

Those of the command line are in `cli/test_bad_usage.py`.
"""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import banditgrad as bg
from banditgrad.linear_model import (
    BanditClassifier,
    BanditClassifierCV,
    BanditRegressor,
    BanditRegressorCV,
    load_model,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
Y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
T = X @ [1.0, 2.0, 3.0, 4.0]
FRAME = pd.DataFrame(X, columns=list("abcd"))
GAPS = np.where(X > 2.0, np.nan, X)
INFINITE = np.where(X > 2.0, np.inf, X)
C, R = BanditClassifier, BanditRegressor


def fitted(data=X):
    return C(random_state=0).fit(data, Y)


# what was done: (a function that does it, the error, what its message says)
MISTAKES = {
    "classes to a regressor": (lambda: R().fit(X, np.where(Y > 0, "yes", "no")), ValueError, ["'yes'", "BanditClass"]),
    "classes to a path": (lambda: BanditRegressorCV().fit(X, np.where(Y > 0, "yes", "no")), ValueError, ["'yes'"]),
    "amounts to a classifier": (lambda: C().fit(X, T), ValueError, ["continuous"]),
    "a gap": (lambda: C().fit(GAPS, Y), ValueError, ["NaN", "column 3", "row", "SimpleImputer"]),
    "a gap in a frame": (lambda: C().fit(FRAME.where(FRAME < 2.0), Y), ValueError, ["NaN", "column 'd'", "row"]),
    "a gap in sparse rows": (lambda: C().fit(sp.csr_array(GAPS), Y), ValueError, ["NaN", "column 3"]),
    "an infinity": (lambda: R().fit(INFINITE, T), ValueError, ["infinity", "column 3"]),
    "a gap in y": (lambda: R().fit(X, np.where(T > 3, np.nan, T)), ValueError, ["y contains NaN"]),
    "words in a frame": (lambda: C().fit(FRAME.assign(e="red"), Y), ValueError, ["'e' (such as 'red')", "OneHot"]),
    "words in an array": (
        lambda: C().fit(np.c_[X.astype(object), np.full(60, "red")], Y),
        ValueError,
        ["column 4", "'red'"],
    ),
    "texts": (lambda: C().fit(["a red fox", "a dog"], [0, 1]), ValueError, ["texts", "TfidfVectorizer"]),
    "masked rows": (lambda: C().fit(np.ma.masked_greater(X, 2.0), Y), ValueError, ["masked", "Fill or remove"]),
    "negative weights": (lambda: C().fit(X, Y, -np.ones(60)), ValueError, ["sample_weight", "got -1", "position 0"]),
    "weights of other rows": (lambda: C().fit(X, Y, np.ones(59)), ValueError, ["sample_weight", "(60,)", "(59,)"]),
    "labels of other rows": (lambda: C().fit(X, Y[:50]), ValueError, ["60", "50"]),
    "two columns of labels": (lambda: C().fit(X, np.c_[Y, Y]), ValueError, ["1d array", "(60, 2)"]),
    "one class": (lambda: C().fit(X, np.ones(60)), ValueError, ["at least two classes", "1.0"]),
    "one feature as a row": (lambda: C().fit(X[:, 0], Y), ValueError, ["2D array", "reshape(-1, 1)"]),
    "no rows": (lambda: C().fit(X[:0], Y[:0]), ValueError, ["0 sample"]),
    "alpha below zero": (lambda: C(alpha=-1).fit(X, Y), ValueError, ["alpha", "from 0", "got -1"]),
    "alpha in words": (lambda: C(alpha="0.1").fit(X, Y), ValueError, ["alpha", "got '0.1'"]),
    "alpha and C": (lambda: C(alpha=1e-3, C=1.0).fit(X, Y), ValueError, ["alpha=0.001", "C=1", "Pass one"]),
    "no C": (lambda: C(C=0).fit(X, Y), ValueError, ["C must be above 0", "penalty=None"]),
    "a misspelt solver": (lambda: C(solver="sgaa").fit(X, Y), ValueError, ["'sgaa'", 'Did you mean "saga"']),
    "a misspelt sampler": (lambda: C(sampler="mab").fit(X, Y), ValueError, ["'mab'", 'Did you mean "mabs"']),
    "a misspelt loss": (lambda: C(loss="logloss").fit(X, Y), ValueError, ['"log_loss"', "'logloss'"]),
    "a loss of numbers": (lambda: C(loss="huber").fit(X, Y), ValueError, ["'huber'", "a loss of BanditRegressor"]),
    "a misspelt penalty": (lambda: C(penalty="ridge").fit(X, Y), ValueError, ["'l2'", "'ridge'"]),
    "predict before fit": (lambda: C().predict(X), ValueError, ["not fitted yet", "Call 'fit'"]),
    "fewer features": (lambda: fitted().predict(X[:, :3]), ValueError, ["3 features", "expecting 4"]),
    "a column is missing": (lambda: fitted(FRAME).predict(FRAME[["a", "b", "c"]]), ValueError, ["missing", "- d"]),
    "a stream without classes": (lambda: C().partial_fit(X, Y), ValueError, ["classes must be passed on the first"]),
    "probabilities of a hinge": (
        lambda: C(loss="hinge", random_state=0).fit(X, Y).predict_proba(X),
        AttributeError,
        ["'hinge'", "CalibratedClassifierCV"],
    ),
    "counts below zero": (lambda: R(loss="poisson").fit(X, T), ValueError, ["y >= 0", "position"]),
    "folds without a penalty": (lambda: BanditClassifierCV(penalty=None).fit(X, Y), ValueError, ["no alpha to choose"]),
    "alphas below zero": (lambda: BanditClassifierCV(alphas=[-1, 1]).fit(X, Y), ValueError, ["alphas", "[-1, 1]"]),
    "more folds than rows": (lambda: BanditClassifierCV(cv=100).fit(X, Y), ValueError, ["n_splits=100", "60"]),
    "a model that is none": (lambda: load_model(__file__), ValueError, ["not a banditgrad model", "fit --out"]),
    "a set that is none": (lambda: bg.datasets.load("mnist"), ValueError, ["'mnist'", "w8a", "read_svmlight"]),
    "labels 0 and 1": (lambda: bg.Problem(X, Y > 0, "logistic"), ValueError, ["{0, 1}", "2*y - 1"]),
    "a penalty's name": (lambda: bg.Problem(X, Y, "logistic", "l2"), TypeError, ["SquaredL2(1e-4)", "'l2'"]),
    "a penalty's class": (lambda: bg.Problem(X, Y, "logistic", bg.L1), TypeError, ["an instance, L1(...)"]),
    "rows, not a problem": (lambda: bg.minimise(X, Y), TypeError, ["a Problem first", "ndarray"]),
    "a solver's class": (lambda: bg.minimise(bg.Problem(X, Y), bg.Saga), TypeError, ["Did you mean Saga(...)?"]),
    "errors of an l1 fit": (lambda: C(penalty="l1", random_state=0).fit(X, Y).summary(X, Y), ValueError, ["l1 norm"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_error_names_what_was_wrong(name):
    mistake, kind, words = MISTAKES[name]
    with pytest.raises(kind) as raised:
        mistake()
    message = str(raised.value)
    for word in words:
        assert word in message, message
    assert not re.search(r"np\.\w+\(", message)
