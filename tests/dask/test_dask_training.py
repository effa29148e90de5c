"""Fits on a cluster of separate processes come to the minimiser of the local solver, whatever the partitions hold."""

import pickle
import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from collections_of_rows import imbalanced, least_value, sparse_blocks
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import banditgrad as bg
from banditgrad import linear_model
from banditgrad.dask import BanditClassifier, BanditRegressor
from banditgrad.linear_model import load_model, save_model

X, Y = imbalanced()
SORTED = np.argsort(Y, kind="stable")
EVEN = (750, 750, 750, 750)
LAYOUTS = {
    "even": (np.arange(3000), EVEN),
    "sorted by label": (SORTED, EVEN),
    "one class only in each": (SORTED, (int(np.sum(Y < 0)), int(np.sum(Y > 0)))),
    "very different sizes, one empty": (np.arange(3000), (2900, 0, 90, 9, 1)),
    "sorted and very different": (SORTED, (2300, 650, 45, 0, 5)),
}
DEEP = {"tol": 1e-7, "random_state": 0}


@pytest.fixture(scope="module")
def minimum():
    return least_value(X, Y)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_minimiser_is_that_of_the_local_solver(client, minimum, layout):
    order, sizes = LAYOUTS[layout]
    model = BanditClassifier(**DEEP).fit(sparse_blocks(X[order], sizes), Y[order])
    np.testing.assert_allclose(model.objective_, minimum, rtol=1e-8)
    whole = linear_model.BanditClassifier(random_state=0, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-4)
    history = model.history_[0]
    assert np.all(np.diff(history.value) <= 0.0)
    assert history.rounds[-1] == model.n_iter_
    assert np.all(np.diff(history.bytes) > 0)


def alike_features(n=3000):
    """Features of very different scale that nearly say the same, and one that few rows have."""
    rng = np.random.default_rng(4)
    rows = (rng.standard_normal((n, 1)) + 0.05 * rng.standard_normal((n, 12))) * np.logspace(0, 2, 12)
    rows[:, 11] *= np.arange(n) < n // 10
    return sp.csr_array(rows), np.where(rows @ rng.standard_normal(12) + rng.logistic(size=n) > 1.0, 1.0, -1.0)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("sizes", [EVEN, (2300, 650, 45, 0, 5)], ids=["even", "very different sizes, one empty"])
@pytest.mark.parametrize("by_label", [False, True], ids=["as they come", "sorted by label"])
def test_features_that_are_alike_take_few_rounds_however_rows_lie_in_partitions(penalty, sizes, by_label):
    rows, labels = alike_features()
    order = np.argsort(labels, kind="stable") if by_label else np.arange(3000)
    model = BanditClassifier(penalty=penalty, tol=1e-6, random_state=0)
    model.fit(sparse_blocks(rows[order], sizes), labels[order])
    assert model.n_iter_ <= 20
    np.testing.assert_allclose(model.objective_, least_value(rows, labels, penalty=penalty), rtol=1e-6)


def test_a_warm_start_where_zero_is_the_minimiser(client):
    model = BanditClassifier(penalty="l1", alpha=1e-3, fit_intercept=False, warm_start=True, random_state=0)
    assert model.fit(sparse_blocks(X, EVEN), Y).coef_.any()
    assert not model.set_params(alpha=100.0).fit(sparse_blocks(X, EVEN), Y).coef_.any()


def test_predictions_travel_without_the_callback(client):
    lock = threading.Lock()
    model = BanditClassifier(callback=lambda progress: lock.locked(), random_state=0).fit(sparse_blocks(X, EVEN), Y)
    assert model.predict(sparse_blocks(X, EVEN)).compute().shape == Y.shape
    with pytest.raises(ValueError, match="two-dimensional, got a Array of 1"):
        model.predict(da.zeros(10))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": bg.ProxSvrg(), "step_size": 0.1}, "is for solvers given by name"),
        ({"solver": bg.ProxSvrg(snapshot="last")}, "snapshots join all partitions"),
    ],
)
def test_what_would_be_ignored_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BanditClassifier(**settings).fit(sparse_blocks(X, EVEN), Y)


def test_an_l1_penalty_and_sorted_rows(client):
    settings = {"penalty": "l1", "alpha": 3e-3}
    model = BanditClassifier(**settings, **DEEP).fit(sparse_blocks(X[SORTED], EVEN), Y[SORTED])
    local = linear_model.BanditClassifier(**settings, random_state=0, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-8)
    assert np.array_equal(model.coef_ == 0.0, local.coef_ == 0.0)
    assert (local.coef_ == 0.0).any()


def test_the_same_bits_on_any_number_of_workers_and_in_threads(cluster):
    rows = sparse_blocks(X, (1000, 1200, 800))
    fits = [BanditClassifier(random_state=4).fit(rows, Y)]
    with Client(cluster):
        fits += [BanditClassifier(random_state=4).fit(rows, Y) for _ in range(2)]
    with (
        LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as four,
        Client(four),
    ):
        fits.append(BanditClassifier(random_state=4).fit(rows, Y))
    for fit in fits[1:]:
        assert np.array_equal(fit.coef_, fits[0].coef_)
        assert np.array_equal(fit.history_[0].value, fits[0].history_[0].value)


def test_bytes_per_round_grow_with_features_and_partitions_not_with_rows(client):
    counts = {}
    for n, sizes in ((3000, EVEN), (1500, (375,) * 4), (3000, (1500, 1500))):
        model = BanditClassifier(max_iter=3, tol=None, random_state=0).fit(sparse_blocks(X[:n], sizes), Y[:n])
        counts[n, len(sizes)] = model.bytes_per_round_
    vector = 8 * 31  # 30 features and an intercept
    assert counts[3000, 4] == pytest.approx(counts[1500, 4], rel=0.3)  # a search now and then costs one more
    assert counts[3000, 2] == pytest.approx(counts[3000, 4] / 2, rel=0.3)
    assert 5 * vector * 4 <= counts[3000, 4] <= 10 * vector * 4


def test_rows_stay_where_they_are(client):
    """No worker sends another more than vectors and labels, let alone its rows."""
    many, labels = sp.vstack([X] * 10).tocsr(), np.tile(Y, 10)
    sizes = (7500,) * 4
    wide, marks = dask.persist(sparse_blocks(many, sizes), da.from_array(labels, chunks=(sizes,)))
    before = client.run(_sent)
    BanditClassifier(random_state=0).fit(wide, marks)
    sent = sum(client.run(_sent).values()) - sum(before.values())
    rows = many.data.nbytes + many.indices.nbytes
    assert sent < rows / 8


def _sent(dask_worker):
    """Bytes that the worker sent to others so far."""
    return sum(log["total"] for log in dask_worker.transfer_outgoing_log)


def test_weights_and_class_weights_count_as_in_the_local_estimator(client):
    weights = np.random.default_rng(0).integers(0, 3, size=3000).astype(float)
    weights[1500:2250] = 0.0  # a partition that counts for nothing
    settings = {"class_weight": "balanced", "tol": 1e-7, "random_state": 0}
    lazy = da.from_array(weights, chunks=700)
    model = BanditClassifier(**settings).fit(sparse_blocks(X, EVEN), Y, sample_weight=lazy)
    local = linear_model.BanditClassifier(**settings).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-8)
    assert model.importance_.shape == (3000,)
    np.testing.assert_allclose(model.importance_.compute(), local.importance_, atol=1e-3)


def three_words():
    return np.array(["ant", "bee", "cat"])[np.argmax(X @ np.random.default_rng(2).standard_normal((30, 3)), axis=1)]


@pytest.mark.parametrize(("together", "problems"), [("auto", 1), ("ovr", 3)])
def test_more_than_two_classes_words_as_labels(client, together, problems):
    labels = three_words()
    order = np.argsort(labels, kind="stable")
    model = BanditClassifier(multi_class=together, **DEEP)
    model.fit(sparse_blocks(X[order], EVEN), da.from_array(labels[order], chunks=1000))
    local = linear_model.BanditClassifier(multi_class=together, random_state=0, tol=1e-9).fit(X, labels)
    assert model.objective_.shape == (problems,)
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-7)
    np.testing.assert_allclose(model.coef_, local.coef_, atol=1e-4)
    rows = sparse_blocks(X, EVEN)
    assert np.array_equal(model.predict(rows).compute(), local.predict(X))
    np.testing.assert_allclose(model.predict_proba(rows).compute(), local.predict_proba(X), atol=1e-3)
    assert model.decision_function(rows).shape == (3000, 3)
    np.testing.assert_allclose(np.sort(model.importance_.compute()), np.sort(local.importance_), atol=1e-3)


def test_more_classes_than_a_hessian_has_room_for(client):
    """With a warm start, from a checkpoint, and seen by a callback."""
    rng = np.random.default_rng(3)
    rows = sp.random_array((2000, 90), density=0.1, rng=rng, format="csr")
    labels = np.argmax(rows @ rng.standard_normal((90, 12)) * 2 + rng.gumbel(size=(2000, 12)), axis=1)
    order, shapes = np.argsort(labels, kind="stable"), []
    settings = {"penalty": "l1", "alpha": 1e-3, "random_state": 0, "warm_start": True}
    model = BanditClassifier(**settings, callback=lambda progress: shapes.append(progress.w.shape), tol=1e-5)
    model.fit(sparse_blocks(rows[order], (500,) * 4), labels[order])
    local = linear_model.BanditClassifier(**settings, tol=1e-8).fit(rows, labels)
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-6)
    assert set(shapes) == {(91, 12)}
    rounds = model.n_iter_
    assert model.fit(sparse_blocks(rows[order], (500,) * 4), labels[order]).n_iter_ < rounds


def test_a_checkpoint_of_several_classes_goes_on(tmp_path):
    labels, rows = three_words(), sparse_blocks(X, EVEN)
    settings = {"random_state": 0, "tol": 1e-5, "checkpoint": tmp_path / "fit.npz"}
    first = BanditClassifier(**settings, callback=lambda progress: progress.passes > 4).fit(rows, labels)
    second = BanditClassifier(**settings).fit(rows, labels)
    assert second.history_[0].value[0] == pytest.approx(first.objective_[0], rel=1e-12)
    assert second.objective_[0] < first.objective_[0]
    other = np.where(labels == "ant", "aphid", labels)
    with pytest.raises(ValueError, match="is of another fit"):
        BanditClassifier(**settings).fit(rows, other)


def frame(n=900):
    rng = np.random.default_rng(8)
    table = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    table["target"] = table["a"] - 2 * table["b"] + 0.5 + 0.3 * rng.standard_normal(n)
    return table


def test_parquet_files_whose_labels_dask_would_read_several_at_once(client, tmp_path):
    table = frame()
    for k in range(6):
        table[150 * k : 150 * (k + 1)].to_parquet(tmp_path / f"rows{k}.parquet")
    lazy = dd.read_parquet(tmp_path)
    model = BanditRegressor(**DEEP).fit(lazy.drop(columns="target"), lazy["target"])
    whole = linear_model.BanditRegressor(random_state=0, tol=1e-9).fit(table.drop(columns="target"), table["target"])
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-5)


def test_dataframes_and_lazy_predictions(client, tmp_path):
    table = frame()
    lazy = dd.from_pandas(table, npartitions=3)
    features, target = lazy[["a", "b", "c"]], lazy["target"]
    settings = {"sampler": "uniform", "tol": 1e-7, "random_state": 0}
    model = BanditRegressor(**settings).fit(features, target)
    local = linear_model.BanditRegressor(**settings).fit(table[["a", "b", "c"]], table["target"])
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-8)
    assert model.coef_.shape == (3,)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    predicted = model.predict(features)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), local.predict(table[["a", "b", "c"]]), atol=1e-4)
    filtered = features[features["a"] > 10.0]  # no row in any partition
    assert model.predict(filtered).compute().shape == (0,)
    unknown = features.to_dask_array(), target.to_dask_array()
    again = BanditRegressor(**settings).fit(*unknown)
    assert np.array_equal(again.coef_, model.coef_)
    loaded = load_model(save_model(model, tmp_path / "model.json"))
    assert np.array_equal(loaded.predict(table[["a", "b", "c"]]), model.local().predict(table[["a", "b", "c"]]))


def test_a_model_can_be_cloned_pickled_and_used_without_dask(client):
    rows = sparse_blocks(X, EVEN)
    model = BanditClassifier(random_state=0, time_limit=60.0).fit(rows, Y)
    assert clone(model).get_params() == model.get_params()
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(rows).compute(), model.local().predict(X))
    assert np.array_equal(copy.predict(X), model.local().predict(X))
    assert model.sampling_probabilities_.sum().compute() == pytest.approx(1.0)


def test_a_warm_start_goes_on(client):
    rows = sparse_blocks(X, EVEN)
    model = BanditClassifier(random_state=0, warm_start=True).fit(rows, Y)
    rounds = model.n_iter_
    assert model.fit(rows, Y).n_iter_ < rounds


def test_errors_name_what_to_mend(client):
    rows = sparse_blocks(X, EVEN)
    with pytest.raises(TypeError, match=r"use banditgrad\.linear_model"):
        BanditClassifier().fit(X, Y)
    with pytest.raises(ValueError, match='Pass "auto"'):
        BanditClassifier(solver="saga").fit(rows, Y)
    with pytest.raises(ValueError, match="time_limit must be a positive number"):
        BanditClassifier(time_limit=-1).fit(rows, Y)
    with pytest.raises(ValueError, match="one entry per row of X"):
        BanditClassifier().fit(rows, Y[:-1])
    with pytest.raises(ValueError, match="at least two classes"):
        BanditClassifier().fit(rows, np.ones(3000))
    with pytest.raises(ValueError, match=r"Partition 1: .*NaN"):
        BanditRegressor().fit(da.from_array(np.array([[1.0], [np.nan]]), chunks=1), np.ones(2))
    with pytest.raises(ValueError, match="sample_weight of partition 2 must be finite and not negative"):
        BanditClassifier().fit(rows, Y, sample_weight=np.where(np.arange(3000) == 1600, -1.0, 1.0))
    lazy = dd.from_pandas(frame(), npartitions=3)
    with pytest.raises(ValueError, match="has 2 partitions, X has 3"):
        BanditRegressor().fit(lazy[["a"]], lazy["target"].repartition(npartitions=2))
    with pytest.raises(NotFittedError):
        BanditClassifier().predict(rows)


def test_tol_does_not_depend_on_the_units_of_the_columns():
    """Only an unpenalised problem is the same in all units."""
    rows = np.random.default_rng(0).standard_normal((600, 3))
    labels = np.where(rows.sum(axis=1) + np.random.default_rng(1).standard_normal(600) > 0.0, 1, 0)
    for units in (np.ones(3), np.array([1e-6, 1.0, 1e6])):
        model = BanditClassifier(penalty=None, tol=1e-5, random_state=0)
        model.fit(da.from_array(rows * units, chunks=(200, 3)), labels)
        whole = bg.Problem(rows * units, np.where(labels == 1, 1.0, -1.0), bg.Logistic(), fit_intercept=True)
        w = np.append(model.coef_, model.intercept_)
        assert whole.optimality(w) <= 1e-5 * whole.optimality(np.zeros(4))


def test_tol_holds_relative_to_what_is_left_of_f():
    """On separable rows a gradient that is small beside that at zero can be large beside F."""
    rows = np.array([[1.0], [2.0], [-1.0], [-2.0]] * 20)
    labels = np.sign(rows[:, 0])
    model = BanditClassifier(penalty=None, tol=1e-3, random_state=0)
    model.fit(da.from_array(rows, chunks=(20, 1)), labels)
    whole = bg.Problem(rows, labels, bg.Logistic(), fit_intercept=True)
    w = np.append(model.coef_, model.intercept_)
    value, norm = whole.value(w), whole.optimality(w)
    assert min(norm / np.sqrt(value), np.sqrt(value / np.log(2.0))) <= 1e-3


def test_targets_whose_squares_are_not_finite_are_refused():
    rows = np.random.default_rng(0).standard_normal((40, 2))
    with pytest.raises(ValueError, match=r"F is inf at w = 0, where every fit begins. Scale the targets."):
        BanditRegressor(random_state=0).fit(da.from_array(rows, chunks=(20, 2)), 1e200 * rows[:, 0])


def test_a_warm_start_where_f_is_not_finite_begins_at_zero():
    rows = np.random.default_rng(0).standard_normal((40, 2))
    collection, target = da.from_array(rows, chunks=(20, 2)), rows[:, 0]
    model = BanditRegressor(random_state=0, warm_start=True).fit(collection, target)
    solution = model.coef_
    model.coef_ = np.full(2, 1e200)
    np.testing.assert_allclose(model.fit(collection, target).coef_, solution, rtol=1e-3, atol=1e-4)
    assert np.isfinite(model.history_[0].value).all()
