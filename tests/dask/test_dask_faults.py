"""Workers that go and come in mid-fit, limits and Ctrl-C; on clusters that these tests may break."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from collections_of_rows import imbalanced, least_value, sparse_blocks
from distributed import Client, LocalCluster, secede, wait
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from banditgrad.dask import BanditClassifier, BanditRegressor
from banditgrad.dask.backend import Cluster

X, Y = imbalanced(20_000)
SIZES = (5000,) * 4
ROWS = sparse_blocks(X, SIZES)
HANGS = 240.0  # seconds after which a fit counts as hanging; most of them may go into compiling


@pytest.fixture(scope="module")
def minimum():
    return least_value(X, Y)


@pytest.fixture
def fragile():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        yield cluster, client


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize(
    "delay", [pytest.param(0.0, marks=pytest.mark.slow), 0.03], ids=["between rounds", "in mid-round"]
)
def test_a_worker_is_killed_in_mid_fit(fragile, minimum, delay):
    _, client = fragile
    victim, killed = sorted(client.run(os.getpid).values())[0], []

    def kill():
        os.kill(victim, signal.SIGKILL)
        killed.append(time.monotonic())

    def after_round(progress):
        if progress.passes >= 3.0 and not killed:
            threading.Timer(delay, kill).start() if delay else kill()

    model = BanditClassifier(tol=1e-7, random_state=0, callback=after_round).fit(ROWS, Y)
    assert killed
    np.testing.assert_allclose(model.objective_, minimum, rtol=1e-8)
    assert np.all(np.diff(model.history_[0].value) <= 0.0)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_an_answer_is_lost_with_its_worker_before_it_is_fetched(fragile):
    """The only worker that may give it is gone, so it is asked for again elsewhere instead of awaited for ever."""
    _, client = fragile
    backend, holder = Cluster(client), sorted(client.nthreads())[0]
    held = backend.make(lambda k, each: each, [1.0])
    victim = client.run(os.getpid, workers=[holder])[holder]
    answered = client.submit(lambda: [np.ones(3)], workers=[holder], pure=False)
    wait([answered])
    os.kill(victim, signal.SIGKILL)
    assert backend._wait([answered]) is None
    (total,) = backend.total(lambda one, share: [np.full(3, one * share)], held, [0.5])
    np.testing.assert_array_equal(total, np.full(3, 0.5))


def test_a_worker_is_added_in_mid_fit_and_takes_its_part(fragile, minimum):
    cluster, client = fragile
    before, worked = set(client.nthreads()), {}

    def after_round(progress):
        if len(client.nthreads()) == 2:
            cluster.scale(3)
            client.wait_for_workers(3)
        for address, keys in client.has_what().items():
            worked.setdefault(address, set()).update(key for key in keys if key.startswith("Partition"))

    model = BanditClassifier(tol=1e-7, random_state=0, callback=after_round).fit(ROWS, Y)
    np.testing.assert_allclose(model.objective_, minimum, rtol=1e-8)
    (added,) = set(worked) - before
    assert worked[added]  # it was given a partition


@pytest.fixture
def one_thread():
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def fit_some(kind, before=None):
    if before is not None:
        before()
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 3))
    return kind(random_state=0).fit(da.from_array(rows, chunks=(50, 3)), (rows[:, 0] > 0).astype(float)).n_iter_


@pytest.mark.parametrize("before", [None, secede], ids=["as it is", "its thread given back before"])
@pytest.mark.parametrize("kind", [BanditClassifier, BanditRegressor])
def test_a_fit_in_a_task_leaves_its_thread_to_the_partitions(one_thread, kind, before):
    assert one_thread.submit(fit_some, kind, before, pure=False).result(timeout=HANGS) >= 1
    assert one_thread.submit(abs, -1).result(timeout=HANGS) == 1  # the thread is there again


def search(rows, labels):
    settings = {"alpha": [1e-4, 1e-2]}
    return GridSearchCV(BanditClassifier(random_state=0), settings, cv=2).fit(rows, labels).best_params_


@pytest.mark.parametrize("where", ["in a task", "by joblib"])
def test_a_search_over_parameters_inside_a_cluster_ends(one_thread, where):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=200)
    rows = da.from_array(rng.standard_normal((200, 3)) + labels[:, None], chunks=(50, 3))
    if where == "in a task":
        best = one_thread.submit(lambda block: search(da.from_array(block, chunks=(50, 3)), labels), rows.compute())
        assert "alpha" in best.result(timeout=HANGS)
    else:
        with joblib.parallel_config(backend="dask"):
            assert "alpha" in search(rows, labels)


def test_a_fit_that_was_stopped_goes_on_from_its_checkpoint(tmp_path, minimum):
    settings = {"tol": 1e-7, "random_state": 0}
    whole = BanditClassifier(**settings).fit(ROWS, Y)
    file = tmp_path / "fit.npz"

    def dies(progress):
        if progress.passes > 5.0:
            raise OSError("the scheduler is gone")

    with pytest.raises(OSError, match="scheduler"):
        BanditClassifier(**settings, checkpoint=file, callback=dies).fit(ROWS, Y)
    resumed = BanditClassifier(**settings, checkpoint=str(file)).fit(ROWS, Y)
    np.testing.assert_allclose(resumed.objective_, minimum, rtol=1e-8)
    left, all_of_it = (fit.history_[0].value[0] - minimum[0] for fit in (resumed, whole))
    assert left < 0.01 * all_of_it  # it did not begin at zero
    assert resumed.n_iter_ < whole.n_iter_
    again = BanditClassifier(**settings, checkpoint=file).fit(ROWS, Y)
    assert again.history_[0].value[0] == pytest.approx(resumed.objective_[0], rel=1e-12)
    np.testing.assert_allclose(again.objective_, minimum, rtol=1e-8)
    with pytest.raises(ValueError, match="is of another fit"):
        BanditClassifier(**settings, alpha=0.5, checkpoint=file).fit(ROWS, Y)
    with pytest.raises(TypeError, match="checkpoint must be"):
        BanditClassifier(**settings, checkpoint=3).fit(ROWS, Y)


def test_the_checkpoint_of_many_classes_has_the_last_steps(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 5))
    labels = rows[:, :3].argmax(axis=1)
    settings = {"penalty": "l1", "alpha": 0.02, "random_state": 0, "checkpoint": tmp_path / "fit.npz"}
    model = BanditClassifier(**settings).fit(da.from_array(rows, chunks=(100, 5)), labels)
    with np.load(settings["checkpoint"]) as saved:
        W = saved["points"][0].reshape(6, 3)  # the intercepts last
        np.testing.assert_array_equal(W[:5].T, model.coef_)
    assert (model.coef_ == 0.0).any()


def test_a_time_limit_ends_the_fit(client):
    def slowly(progress):
        time.sleep(0.2)

    model = BanditClassifier(tol=None, time_limit=0.3, random_state=0, callback=slowly).fit(ROWS, Y)
    assert model.n_iter_ <= 3
    assert BanditClassifier(tol=None, random_state=0).fit(ROWS, Y).n_iter_ > 3
    assert model.objective_[0] <= model.history_[0].value[0]


def test_a_time_limit_that_leaves_no_time_for_a_round_says_that_nothing_was_gained():
    with pytest.warns(ConvergenceWarning, match=r"time_limit=1e-09 seconds before its first round.*Raise time_limit"):
        model = BanditClassifier(tol=None, time_limit=1e-9, random_state=0).fit(ROWS, Y)
    assert not model.coef_.any()


def test_a_time_limit_that_ends_a_fit_above_tol_says_so():
    def slowly(progress):
        time.sleep(0.6)

    limited = BanditClassifier(tol=1e-12, time_limit=0.5, random_state=0, callback=slowly)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0.5 seconds.* above tol=1e-12\. Raise time_limit"):
        model = limited.fit(ROWS, Y)
    assert model.objective_[0] == model.history_[0].value.min()


def test_max_iter_that_ends_a_fit_above_tol_says_so():
    with pytest.warns(ConvergenceWarning, match=r"made max_iter=1 rounds .* raise max_iter"):
        BanditClassifier(tol=1e-7, max_iter=1, random_state=0).fit(ROWS, Y)


def test_a_fit_that_rounding_ends_above_tol_says_so():
    with pytest.warns(ConvergenceWarning, match="found no step that makes F fall and the relative optimality is"):
        BanditClassifier(tol=1e-300, random_state=0).fit(ROWS, Y)


def test_a_callback_ends_the_fit(client):
    model = BanditClassifier(tol=None, random_state=0, callback=lambda progress: True).fit(ROWS, Y)
    assert model.n_iter_ == 1


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_ctrl_c_returns_the_current_model(client):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background

    def after_round(progress):
        if progress.passes >= 4.0:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()

    try:
        with pytest.warns(ConvergenceWarning, match="interrupted; it holds what was reached"):
            model = BanditClassifier(tol=None, random_state=0, callback=after_round).fit(ROWS, Y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.objective_[0] < model.history_[0].value[0]
    assert model.predict(ROWS).shape == (20_000,)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mapped", "parquet"])
def test_rows_in_files_larger_than_the_memory_of_the_workers(tmp_path, kind):
    """2.4 GB of rows on two workers of 900 MB each."""
    n, d, blocks = 100_000, 100, 60
    for k in range(blocks):
        rng = np.random.default_rng(k)
        rows = rng.standard_normal((n, d), dtype=np.float32)
        _write(tmp_path, kind, k, rows, np.sign(rows[:, 0] + rng.standard_normal(n)))
    X, y = _collections(tmp_path, kind, n, d, blocks)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="900MB", dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster),
    ):
        assert n * d * blocks * 4 > 1.3 * 2 * 900e6
        model = BanditClassifier(sampler="uniform", random_state=0).fit(X, y)
        first = X.partitions[0] if kind == "parquet" else X[:n]
        truth = (y.partitions[0] if kind == "parquet" else y[:n]).compute()
        assert (model.predict(first).compute() == np.asarray(truth)).mean() > 0.7


def _write(folder, kind, k, rows, labels):
    if kind == "mapped":
        np.save(folder / f"X{k}.npy", rows)
        np.save(folder / f"y{k}.npy", labels)
    else:
        table = pd.DataFrame(rows, columns=[f"x{j}" for j in range(rows.shape[1])])
        table.assign(label=labels).to_parquet(folder / f"rows{k:03}.parquet")


def _collections(folder, kind, n, d, blocks):
    if kind == "parquet":
        table = dd.read_parquet(folder)
        return table.drop(columns="label"), table["label"]

    def from_files(name, shape, dtype):
        pieces = [dask.delayed(np.load)(folder / f"{name}{k}.npy", mmap_mode="r") for k in range(blocks)]
        return da.concatenate([da.from_delayed(piece, shape, dtype) for piece in pieces])

    return from_files("X", (n, d), np.float32), from_files("y", (n,), float)
