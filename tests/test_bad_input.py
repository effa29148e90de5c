"""Bad input gets an error that names it, before any compiled code runs; nothing crashes the interpreter."""

import numpy as np
import pytest
import scipy.sparse as sp

import banditgrad as bg


class Everywhere(bg.L1):
    """A penalty that does not ask which coordinate it is of."""

    def cost(self, w):
        return 0.0


X = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.0]])
Y = np.array([1.0, -1.0, 1.0])
PROBLEM = bg.Problem(X, Y)


def tampered(**changes):
    """A CSR array whose arrays were changed behind scipy's back."""
    matrix = sp.csr_array(X)
    for name, value in changes.items():
        setattr(matrix, name, np.asarray(value, dtype=getattr(matrix, name).dtype))
    return matrix


def changed(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


def swapped(form, **changes):
    """A sparse array whose arrays were replaced behind scipy's back."""
    matrix = sp.csr_array(X).asformat(form)
    for name, value in changes.items():
        setattr(matrix, name, value)
    return matrix


def ints(*values):
    return np.array(values, dtype=np.int32)


def long_dok():
    matrix = sp.dok_array(X)
    matrix._dict[(9, 0)] = 1.0
    return matrix


def long_lil():
    matrix = sp.lil_array(X)
    matrix.data[1] = [1.0] * 100_000
    return matrix


def bsr(**changes):
    matrix = sp.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
    for name, value in changes.items():
        setattr(matrix, name, value)
    return matrix


def masked(values):
    return np.ma.masked_array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) == 1)


BAD_DATA = {
    "CSR index too large": (
        lambda: bg.Problem(tampered(indices=[0, 1, 5, 0]), Y),
        ValueError,
        "column index outside 0..1",
    ),
    "CSR index negative": (lambda: bg.Problem(tampered(indices=[0, 1, -1, 0]), Y), ValueError, "column index"),
    "CSR indptr decreasing": (lambda: bg.Problem(tampered(indptr=[0, 3, 2, 4]), Y), ValueError, "must not decrease"),
    "CSR indptr too long": (lambda: bg.Problem(tampered(indptr=[0, 2, 3, 400]), Y), ValueError, "at most 4"),
    "CSR indptr negative": (lambda: bg.Problem(tampered(indptr=[-5, 2, 3, 4]), Y), ValueError, "from 0"),
    "CSR indptr of wrong size": (lambda: bg.Problem(tampered(indptr=[0, 2, 4]), Y), ValueError, "4 entries"),
    "CSR indptr unsigned, decreasing": (
        lambda: bg.Problem(swapped("csr", indptr=np.array([0, 2_000_000_000, 3, 4], np.uint32)), Y),
        ValueError,
        "must not decrease",
    ),
    "CSR indptr in a column": (
        lambda: bg.Problem(swapped("csr", indptr=ints([0], [2], [3], [4])), Y),
        ValueError,
        r"X.indptr must be one-dimensional, got shape \(4, 1\)",
    ),
    "CSR indices in a column": (
        lambda: bg.Problem(swapped("csr", indices=ints([0], [1], [1], [0])), Y),
        ValueError,
        "X.indices must be one-dimensional",
    ),
    "CSR data in a column": (
        lambda: bg.Problem(swapped("csr", data=np.ones((4, 1))), Y),
        ValueError,
        "X.data must be one-dimensional",
    ),
    "CSR indices not whole": (
        lambda: bg.Problem(swapped("csr", indices=np.array([0.0, 1.0, 1.5, 0.0])), Y),
        TypeError,
        "X.indices must hold whole numbers, got dtype float64",
    ),
    "BSR indptr": (lambda: bg.Problem(bsr(indptr=ints(0, 10**6, 4)), np.ones(4)), ValueError, "must not decrease"),
    "BSR indptr too long": (lambda: bg.Problem(bsr(indptr=ints(0, 2, 900)), np.ones(4)), ValueError, "at most 4"),
    "BSR index": (
        lambda: bg.Problem(bsr(indices=ints(0, 1, 0, 10**6)), np.ones(4)),
        ValueError,
        "block column indices from 0 to 1000000",
    ),
    "BSR blocks": (lambda: bg.Problem(bsr(data=np.ones((4, 3, 2))), np.ones(4)), ValueError, "blocks that fill"),
    "DIA data too short": (
        lambda: bg.Problem(swapped("dia", offsets=np.arange(-2, 2, dtype=np.int32)), Y),
        ValueError,
        "a row for each offset",
    ),
    "DIA offsets": (
        lambda: bg.Problem(swapped("dia", offsets=ints(-1, 0, 2**31 - 1)), Y),
        ValueError,
        "X.offsets must be from -2 to 1",
    ),
    "LIL lists of two lengths": (lambda: bg.Problem(long_lil(), Y), ValueError, "lists of one length"),
    "LIL index": (
        lambda: bg.Problem(swapped("lil", rows=np.array([[0, 1], [7], [0]], dtype=object)), Y),
        ValueError,
        "column index outside 0..1",
    ),
    "DOK index": (lambda: bg.Problem(long_dok(), Y), ValueError, "index 9|indices from 0 to 9"),
    "COO index not whole": (
        lambda: bg.Problem(swapped("coo", coords=(np.array([0.0, 0.5, 1.0, 2.0]), ints(0, 1, 1, 0))), Y),
        TypeError,
        "row indices of X must hold whole numbers",
    ),
    "COO of two lengths": (
        lambda: bg.Problem(swapped("coo", data=np.ones(10**6)), Y),
        ValueError,
        "X.row, X.col and X.data must be of one length",
    ),
    "masked y": (lambda: bg.Problem(X, masked(Y)), TypeError, "y is a masked array, 1 of its entries"),
    "masked weights": (
        lambda: bg.Problem(X, Y, sample_weight=masked(np.ones(3))),
        TypeError,
        "sample_weight is a masked array",
    ),
    "norm overflows": (lambda: bg.Problem(X * 1e200, Y), ValueError, "Row 0 of X is too long"),
    "masked array": (lambda: bg.Problem(np.ma.masked_less(X, 0), Y), TypeError, "masked"),
    "CSR data too short": (lambda: bg.Problem(tampered(data=[1.0]), Y), ValueError, "at most 1"),
    "CSR with NaN": (lambda: bg.Problem(sp.csr_array(changed(X, (1, 1), np.nan)), Y), ValueError, "NaN .* row 1"),
    "CSC index out of range": (
        lambda: bg.Problem(swapped("csc", indices=ints(0, 2, 0, 77)), Y),
        ValueError,
        "row indices from 0 to 77",
    ),
    "COO index out of range": (
        lambda: bg.Problem(swapped("coo", coords=(ints(0, 0, 1, 9), ints(0, 1, 1, 0))), Y),
        ValueError,
        "row indices from 0 to 9",
    ),
    "NaN in X": (lambda: bg.Problem(changed(X, (2, 0), np.nan), Y), ValueError, "NaN or an infinity in row 2"),
    "infinity in X": (lambda: bg.Problem(changed(X, (0, 0), -np.inf), Y), ValueError, "row 0"),
    "X with one dimension": (lambda: bg.Problem(X[0], Y), ValueError, "two-dimensional"),
    "X without rows": (lambda: bg.Problem(np.empty((0, 2)), []), ValueError, "at least one row"),
    "X without columns": (lambda: bg.Problem(sp.csr_array((3, 0)), Y), ValueError, "at least one row and one column"),
    "X of strings": (lambda: bg.Problem([["a"], ["b"], ["c"]], Y), TypeError, "real numbers"),
    "complex X": (lambda: bg.Problem(X + 1j, Y), TypeError, "real numbers"),
    "y too short": (lambda: bg.Problem(X, Y[:2]), ValueError, r"y must have shape \(3,\)"),
    "y a column": (lambda: bg.Problem(X, Y[:, None]), ValueError, "y must have shape"),
    "NaN in y": (lambda: bg.Problem(X, [1, np.nan, 1], bg.Squared()), ValueError, "y has a NaN .* position 1"),
    "labels 0 and 1": (lambda: bg.Problem(X, [0, 1, 1]), ValueError, r"labels -1 and \+1, got \{0, 1\}. Pass 2\*y - 1"),
    "three labels": (lambda: bg.Problem(X, [1, 2, 3], bg.SquaredHinge()), ValueError, "Encode the two classes"),
    "weights too few": (lambda: bg.Problem(X, Y, sample_weight=[1.0]), ValueError, "sample_weight must have shape"),
    "weights negative": (lambda: bg.Problem(X, Y, sample_weight=[1, -2, 1]), ValueError, "not be negative, got -2.0"),
    "weights all zero": (lambda: bg.Problem(X, Y, sample_weight=[0, 0, 0]), ValueError, "not be all zero"),
    "loss not an instance": (lambda: bg.Problem(X, Y, bg.Logistic), TypeError, "instance"),
    "penalty for loss": (lambda: bg.Problem(X, Y, bg.L1(1)), TypeError, "L1 has no method value"),
    "penalty without j": (
        lambda: bg.Problem(X, Y, penalty=Everywhere(1)),
        TypeError,
        r"Everywhere.cost must be a plain method cost\(self, w, j\)",
    ),
    "w too long": (lambda: PROBLEM.value([1, 2, 3]), ValueError, r"w must have shape \(2,\), got \(3,\)"),
    "p too short": (lambda: PROBLEM.effective_variance([0, 0], [1.0]), ValueError, "p must have shape"),
    "p negative": (lambda: PROBLEM.effective_variance([0, 0], [1.0, -1.0, 1.0]), ValueError, "probabilities"),
}

BAD_SETTINGS = {
    "step zero": (lambda: bg.Sgd(0.0), ValueError, "step_size must be positive"),
    "step negative": (lambda: bg.ProxSgd(-1), ValueError, "step_size must be positive"),
    "step NaN": (lambda: bg.Sgd(np.nan), ValueError, "step_size must be positive"),
    "step a string": (lambda: bg.Sgd("big"), TypeError, "positive number, a schedule or"),
    "mu zero": (lambda: bg.InverseTime(0), ValueError, "positive, finite mu"),
    "alpha and mu zero": (lambda: bg.ShiftedInverseTime(0, 0), ValueError, "not both zero"),
    "average unknown": (lambda: bg.Sgd(1, average="mean"), ValueError, "average"),
    "batch of none": (lambda: bg.Sgd(1, batch_size=0), ValueError, "batch_size of at least 1"),
    "p-norm of one": (lambda: bg.PNorm(1.0), ValueError, "1 < p <= 2"),
    "geometry a number": (lambda: bg.ProxSgd(1, geometry=2), TypeError, "geometry=Euclidean"),
    "eta zero": (lambda: bg.Mabs(eta=0), ValueError, "0 < eta"),
    "delta unknown": (lambda: bg.Mabs(delta="big"), ValueError, "delta="),
    "delta negative": (lambda: bg.Mabs(delta=-1.0), ValueError, "not negative"),
    "mix unknown": (lambda: bg.Mabs(mix="best"), ValueError, "mix="),
    "relax zero": (lambda: bg.Mabs(relax=0.0), ValueError, "relax"),
    "reset never": (lambda: bg.Mabs(reset_every=0), ValueError, "reset_every"),
    "reset after half a draw": (lambda: bg.Mabs(reset_every=2.5), ValueError, "whole number"),
    "horizon infinite": (lambda: bg.Mabs(horizon=np.inf), ValueError, "whole number"),
    "theta above one": (lambda: bg.Vrb(theta=2), ValueError, "0 < theta <= 1"),
    "gamma negative": (lambda: bg.Vrb(gamma=-1), ValueError, "gamma"),
    "memory of one": (lambda: bg.RecentNorm(memory=1.0), ValueError, "memory"),
    "importance unknown": (lambda: bg.Importance(by="luck"), ValueError, "by="),
}

BAD_RUNS = {
    "no items": (lambda: bg.Mabs().start(0), ValueError, "number of items"),
    "half an item": (lambda: bg.Mabs().start(1.5), ValueError, "number of items"),
    "too many items": (lambda: bg.Uniform().start(2**31), ValueError, "number of items"),
    "horizon zero": (lambda: bg.Mabs().start(3, horizon=0), ValueError, "horizon"),
    "no smoothness": (lambda: bg.Importance().start(3), ValueError, "smoothness="),
    "no bounds": (lambda: bg.Mabs(delta="bound").start(3), ValueError, "bounds="),
    "mix with a zero": (
        lambda: bg.Mabs(mix=[1, 0, 1]).start(3),
        ValueError,
        "positive, got 0.0 at position 1",
    ),
    "mix of wrong size": (lambda: bg.Mabs(mix=[1, 1]).start(3), ValueError, r"shape \(3,\)"),
    "importance all zero": (lambda: bg.Importance(by=np.zeros(3)).start(3), ValueError, "all zero"),
    "draw a negative number": (lambda: bg.Mabs().start(3).draw(-1), ValueError, "size"),
    "update out of range": (lambda: bg.Mabs().start(3).update([3], [1.0]), ValueError, "from 0 to 2, got 3"),
    "update negative index": (lambda: bg.Mabs().start(3).update([-1], [1.0]), ValueError, "from 0 to 2"),
    "update with floats": (lambda: bg.Mabs().start(3).update([0.5], [1.0]), ValueError, "whole numbers"),
    "update of other length": (lambda: bg.Mabs().start(3).update([0, 1], [1.0]), ValueError, r"shape \(2,\)"),
    "update with NaN": (lambda: bg.Mabs().start(3).update([0], [np.nan]), ValueError, "finite"),
    "update negative": (lambda: bg.Mabs().start(3).update([0], [-1.0]), ValueError, "not negative"),
    "update with p of zero": (lambda: bg.Mabs().start(3).update([0], [1.0], [0.0]), ValueError, "above 0"),
    "replay of fractions": (lambda: bg.Replay([0.7]).start(3), ValueError, "whole numbers"),
    "probability out of range": (lambda: bg.Mabs().start(3).probability(7), ValueError, "from 0 to 2"),
    "unbounded loss": (
        lambda: bg.minimise(bg.Problem(X, Y, bg.Squared()), bg.Sgd(1), bg.Mabs(delta="bound")),
        ValueError,
        "unbounded slope",
    ),
    "no problem": (lambda: bg.minimise(X, bg.Sgd(1)), TypeError, "expects a Problem"),
    "solver a class": (lambda: bg.minimise(PROBLEM, bg.Sgd), TypeError, r"Did you mean Sgd\(...\)"),
    "a misspelt sampler": (lambda: bg.minimise(PROBLEM, bg.Sgd(1), "mab"), ValueError, 'Did you mean "mabs"?'),
    "a misspelt solver": (lambda: bg.minimise(PROBLEM, np.str_("sagga")), ValueError, "got 'sagga'. Did you mean"),
    "a misspelt loss": (lambda: bg.Problem(np.eye(2), [1, -1], "logistik"), ValueError, 'Did you mean "logistic"?'),
    "passes negative": (lambda: bg.minimise(PROBLEM, bg.Sgd(1), passes=-1), ValueError, "passes"),
    "passes infinite": (lambda: bg.minimise(PROBLEM, bg.Sgd(1), passes=np.inf), ValueError, "passes"),
    "tol negative": (lambda: bg.minimise(PROBLEM, bg.Sgd(1), tol=-1), ValueError, "tol"),
    "record never": (lambda: bg.minimise(PROBLEM, bg.Sgd(1), record_every=0), ValueError, "record_every"),
    "no time": (lambda: bg.minimise(PROBLEM, bg.Sgd(1), time_limit=0), ValueError, "time_limit"),
    "w0 of wrong size": (lambda: bg.minimise(PROBLEM, bg.Sgd(1), w0=[1]), ValueError, "w must have shape"),
    "w0 with NaN": (lambda: bg.minimise(PROBLEM, bg.Sgd(1), w0=[np.nan, 0]), ValueError, "w0"),
    "p-norm with L2": (
        lambda: bg.minimise(bg.Problem(X, Y, penalty=bg.SquaredL2(1)), bg.ProxSgd(1, geometry=bg.PNorm(1.5))),
        TypeError,
        "L1 and Zero only",
    ),
}

CASES = {**BAD_DATA, **BAD_SETTINGS, **BAD_RUNS}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named(name):
    call, kind, message = CASES[name]
    with pytest.raises(kind, match=message):
        call()


def test_one_class_alone_is_a_problem_too():
    problem = bg.Problem(X, np.ones(3), penalty=bg.SquaredL2(0.1))
    result = bg.minimise(problem, bg.Sgd(0.1), bg.Mabs(), passes=50, seed=0)
    assert result.value < problem.value(np.zeros(2))


def test_numbers_of_any_kind_will_do():
    assert bg.Sgd(np.float32(0.5)).start(PROBLEM, np.zeros(2), 0).rule.schedule.step == 0.5
    assert isinstance(bg.L1(np.float32(0.5)).strength, float)
    assert bg.minimise(PROBLEM, bg.Sgd(np.int64(1)), passes=1e-3).passes > 0


def test_weights_of_any_size_will_do():
    for scale in (1e-300, 1.0, 1e307):
        problem = bg.Problem(X, Y, sample_weight=np.full(3, scale))
        assert problem.value(np.ones(2)) == pytest.approx(PROBLEM.value(np.ones(2)))


def test_the_problem_keeps_its_own_labels():
    y = Y.copy()
    problem = bg.Problem(X, y)
    before = problem.value(np.ones(2))
    y *= -1.0
    assert problem.value(np.ones(2)) == before
