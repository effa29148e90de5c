"""A cluster of real processes, one for all tests of this folder that only use it."""

import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as running:
        yield running


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as connected:
        yield connected
