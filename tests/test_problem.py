import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import banditgrad as bg
import reference
from tables import LOSSES, PENALTIES


def expected(X, y, loss, penalty, w, s, fit_intercept):
    A = reference.with_intercept(X, fit_intercept)
    z = A @ w
    slopes = s * reference.loss_derivative(loss, z, y)
    cost = sum(penalty.cost(v, j) for j, v in enumerate(w[: X.shape[1]]))
    value = np.mean(s * reference.loss_value(loss, z, y)) + cost
    return value, A.T @ slopes / len(y), abs(slopes) * np.linalg.norm(A, axis=1)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_value_gradient_and_norms_are_the_formulas(small_data, rng, loss, weighted, fit_intercept):
    X, y = small_data
    w = rng.standard_normal(X.shape[1] + fit_intercept)
    s = rng.random(len(y)) if weighted else np.ones(len(y))
    penalty = PENALTIES["ElasticNet"]
    problem = bg.Problem(
        sp.csr_array(X), y, LOSSES[loss], penalty, sample_weight=s if weighted else None, fit_intercept=fit_intercept
    )
    value, gradient, norms = expected(X, y, loss, penalty, w, s / s.mean(), fit_intercept)
    assert problem.value(w) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(problem.gradient(w), gradient, atol=1e-13)
    np.testing.assert_allclose(problem.gradient_norms(w), norms, atol=1e-13)
    p = rng.dirichlet(np.ones(len(y)))
    assert problem.effective_variance(w, p) == pytest.approx(np.sum(norms**2 / p) / len(y) ** 2, rel=1e-12)
    best = norms / norms.sum()
    assert problem.optimal_variance(w) == pytest.approx(problem.effective_variance(w, best), rel=1e-12)
    squares = (X**2).sum(axis=1) + fit_intercept
    np.testing.assert_allclose(problem.smoothness, LOSSES[loss].curvature() * s / s.mean() * squares)
    assert problem.tau == pytest.approx(problem.smoothness.max() / problem.smoothness.mean())


def every_form(X, folder):
    """X in every form that a problem takes, all holding the same numbers."""
    X = X.astype(np.float32)
    np.save(folder / "c.npy", X)
    np.save(folder / "f.npy", np.asfortranarray(X, dtype=np.float64))
    long = sp.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    doubled = sp.csr_array(X).tocoo()
    doubled = sp.coo_array(
        (np.r_[doubled.data, doubled.data] / 2, (np.r_[doubled.row, doubled.row], np.r_[doubled.col, doubled.col])),
        X.shape,
    )
    unsorted = sp.csr_array(X[:, ::-1])
    unsorted.indices = (X.shape[1] - 1 - unsorted.indices).astype(np.int32)
    unsorted.has_sorted_indices = False
    duplicates = sp.csr_array(
        (np.repeat(sp.csr_array(X).data / 2, 2), np.repeat(sp.csr_array(X).indices, 2), 2 * sp.csr_array(X).indptr),
        shape=X.shape,
    )
    return {
        "float32": X,
        "float64": X.astype(np.float64),
        "big endian": X.astype(">f8"),
        "fortran": np.asfortranarray(X),
        "a slice": np.repeat(X, 2, axis=1)[:, ::2],
        "list": X.tolist(),
        "memory map": np.load(folder / "c.npy", mmap_mode="r"),
        "fortran memory map": np.load(folder / "f.npy", mmap_mode="r"),
        "csr_array": sp.csr_array(X),
        "csr_matrix float64": sp.csr_matrix(X.astype(np.float64)),
        "csr int64": long,
        "csc_array": sp.csc_array(X),
        "coo_matrix": sp.coo_matrix(X),
        "coo with duplicates": doubled,
        "csr unsorted": unsorted,
        "csr with duplicates": duplicates,
    }


def test_every_form_of_data_is_the_same_problem(small_data, rng, tmp_path):
    X, y = small_data
    w = rng.standard_normal(X.shape[1])
    forms = every_form(X, tmp_path)
    plain = bg.Problem(forms["float64"], y)
    for name, form in forms.items():
        problem = bg.Problem(form, y)
        assert problem.value(w) == pytest.approx(plain.value(w), rel=1e-14), name
        np.testing.assert_allclose(problem.gradient(w), plain.gradient(w), atol=1e-14, err_msg=name)
        np.testing.assert_allclose(problem.smoothness, plain.smoothness, rtol=1e-13, err_msg=name)


@settings(deadline=None)  # the first compiles
@given(
    st.lists(st.lists(st.integers(-1, 4), max_size=4), min_size=1, max_size=6),
    st.sampled_from([np.int32, np.int64]),
)
def test_columns_of_any_order_are_checked(rows, kind):
    """Rows that may be empty, fall, repeat a column or leave the range: accepted is the matrix that was meant."""
    columns = np.array([j for row in rows for j in row], dtype=kind)
    X = sp.csr_array((len(rows), 4))
    X.indptr = np.cumsum([0, *map(len, rows)]).astype(kind)
    X.indices, X.data = columns, np.ones(columns.size)
    y = np.ones(len(rows))
    if columns.size and not (columns.min() >= 0 and columns.max() < 4):
        bad = next(i for i, row in enumerate(rows) if not all(0 <= j < 4 for j in row))
        with pytest.raises(ValueError, match=rf"outside 0\.\.3 in row {bad}"):
            bg.Problem(X, y)
    else:
        meant = [np.bincount(row, minlength=4) for row in rows]
        np.testing.assert_array_equal(bg.Problem(X, y).parts.norms2, np.square(meant).sum(axis=1))


def test_whole_numbers_are_data_too(small_data):
    X, y = small_data
    X = np.round(X).astype(int)
    w = np.ones(X.shape[1])
    value = bg.Problem(X.astype(float), y).value(w)
    assert bg.Problem(X, y.astype(int)).value(w) == value
    assert bg.Problem(sp.csr_array(X), y).value(w) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("name", ["memory map", "fortran memory map", "float32", "float64", "csr_array", "csr int64"])
def test_data_is_not_copied(small_data, tmp_path, name, monkeypatch):
    X, y = small_data
    monkeypatch.setattr("banditgrad.rows.MOST_COPIED", 0)  # as if it were large
    form = every_form(X, tmp_path)[name]
    rows = bg.Problem(form, y).parts.rows
    if sp.issparse(form):
        assert np.shares_memory(rows.data, form.data)
        assert np.shares_memory(rows.indices, form.indices)
    else:
        assert np.shares_memory(rows.matrix, form)


def test_gradient_mapping_is_zero_at_the_minimiser_only(rng):
    X = rng.standard_normal((40, 3))
    y = X @ [1.0, -2.0, 0.0]
    problem = bg.Problem(X, y, bg.Squared(), bg.SquaredL2(0.1))
    best = np.linalg.solve(X.T @ X / 40 + 0.1 * np.eye(3), X.T @ y / 40)
    assert np.linalg.norm(problem.gradient_mapping(best)) < 1e-12
    assert np.linalg.norm(problem.gradient_mapping(best + 0.1)) > 1e-2


def test_weights_count_like_repeated_rows(small_data, rng):
    X, y = small_data
    counts = rng.integers(0, 4, len(y))
    weighted = bg.Problem(X, y, sample_weight=counts)
    repeated = bg.Problem(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    w = rng.standard_normal(X.shape[1])
    assert weighted.value(w) == pytest.approx(repeated.value(w), rel=1e-12)
    np.testing.assert_allclose(weighted.gradient(w), repeated.gradient(w), atol=1e-13)


def test_rows_of_zeros_and_the_smallest_shapes():
    for X in (np.zeros((4, 3)), sp.csr_array((4, 3))):
        problem = bg.Problem(X, [1, -1, 1, 1])
        assert problem.tau == 1.0
        assert problem.value(np.ones(3)) == pytest.approx(np.log(2))
        assert problem.effective_variance(np.ones(3), np.zeros(4)) == 0.0
        assert problem.optimal_variance(np.ones(3)) == 0.0
    assert bg.Problem([[2.0]], [1.0]).tau == 1.0
    moving = bg.Problem([[2.0], [0.0]], [1.0, 1.0])
    assert moving.effective_variance([0.0], [1.0, 0.0]) == pytest.approx(0.25)
    assert moving.effective_variance([0.0], [0.0, 1.0]) == np.inf


@pytest.mark.parametrize(("name", "tau"), [("w8a", 9.79), ("ijcnn1", 2.61), ("a9a", 1.01)])
def test_tau_of_the_papers_data(real_data, name, tau):
    X, y = real_data(name)
    assert bg.Problem(X, y).tau == pytest.approx(tau, abs=0.01)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
def test_every_sparse_format_is_the_same_problem(form, small_data):
    X, y = small_data
    w = np.linspace(-1.0, 1.0, X.shape[1])
    assert bg.Problem(sp.csr_array(X).asformat(form), y).value(w) == bg.Problem(sp.csr_array(X), y).value(w)


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_rows_that_are_changed_afterwards_are_not_read_out_of_bounds(name, small_data, monkeypatch):
    X, y = sp.csr_array(small_data[0]), small_data[1]
    w = np.ones(X.shape[1])
    problem = bg.Problem(X, y)
    value = problem.value(w)
    monkeypatch.setattr("banditgrad.rows.MOST_COPIED", 10)
    large = bg.Problem(X, y)
    large.check_rows()
    getattr(X, name)[3] += 1_000_000
    problem.check_rows()
    assert problem.value(w) == value
    with pytest.raises(ValueError, match=r"X.indptr must not decrease|X was changed: .* outside 0..11"):
        large.check_rows()


def test_a_masked_array_without_masked_entries_is_an_array(small_data):
    X, y = small_data
    w = np.ones(X.shape[1])
    assert bg.Problem(np.ma.asarray(X), np.ma.asarray(y)).value(w) == bg.Problem(X, y).value(w)
