import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditgrad as bg
from tables import PENALTIES

numbers = st.floats(-10, 10)


@pytest.mark.parametrize("name", PENALTIES)
@given(w=numbers, step=st.floats(0.01, 100))
def test_prox_is_the_minimiser(name, w, step):
    penalty = PENALTIES[name]

    def objective(u):
        return step * penalty.cost(u, 0) + 0.5 * (u - w) ** 2

    u = penalty.prox(w, step, 0)
    for other in (0.0, w, u + 1e-3, u - 1e-3, u + 1.0, u - 1.0):
        assert objective(u) <= objective(other) + 1e-12


@pytest.mark.parametrize("name", PENALTIES)
@given(w=numbers, u=numbers)
def test_subgradient_inequality(name, w, u):
    penalty = PENALTIES[name]
    assert penalty.cost(u, 0) >= penalty.cost(w, 0) + penalty.subgradient(w, 0) * (u - w) - 1e-12
    assert penalty.subgradient(0.0, 0) == 0.0


@pytest.mark.parametrize("name", [name for name in PENALTIES if hasattr(PENALTIES[name], "shrinkage")])
@given(w=numbers)
def test_shrinkage_describes_the_cost(name, w):
    l1, l2 = PENALTIES[name].shrinkage()
    assert PENALTIES[name].cost(w, 0) == pytest.approx(l1 * abs(w) + l2 / 2 * w * w)


def test_settings_are_checked():
    for make in (lambda: bg.L1(-1), lambda: bg.SquaredL2(np.nan), lambda: bg.ElasticNet(1, 1.5), lambda: bg.Zero(1)):
        with pytest.raises(ValueError, match=r"strength|l1_ratio"):
            make()
