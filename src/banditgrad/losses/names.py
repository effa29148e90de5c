"""Losses by name: as scikit-learn calls them, or like their class in lower case."""

from collections.abc import Callable, Mapping
from typing import Any

from banditgrad._names import look_up
from banditgrad.losses.classification import ComplementaryLogLog, Hinge, Logistic, ModifiedHuber, SquaredHinge
from banditgrad.losses.deviances import Gamma, Poisson, Tweedie
from banditgrad.losses.regression import Huber, Quantile, Squared

_BY_CLASS: Mapping[str, Callable[[], Any]] = {
    kind.__name__.lower(): kind
    for kind in (
        ComplementaryLogLog,
        Gamma,
        Hinge,
        Huber,
        Logistic,
        ModifiedHuber,
        Poisson,
        Quantile,
        Squared,
        SquaredHinge,
        Tweedie,
    )
}


def make_loss(loss: str, epsilon: float = 0.1, quantile: float = 0.5, power: float = 1.5) -> Any:
    """The loss that scikit-learn calls so.

    `epsilon` is where Huber's becomes linear, `power` that of Tweedie's variance.
    """
    losses: dict[str, Any] = {
        "log_loss": Logistic,
        "squared_hinge": SquaredHinge,
        "hinge": Hinge,
        "modified_huber": ModifiedHuber,
        "squared_error": Squared,
        "huber": lambda: Huber(epsilon),
        "quantile": lambda: Quantile(quantile),
        "poisson": Poisson,
        "gamma": Gamma,
        "tweedie": lambda: {1.0: Poisson, 2.0: Gamma}.get(power, lambda: Tweedie(power))(),
    }
    return look_up("loss", loss, losses)()


def loss_named(name: str) -> Any:
    """The loss of that name with its usual numbers: scikit-learn's name, or that of the class in lower case."""
    usual = {"log_loss": Logistic, "squared_hinge": SquaredHinge, "modified_huber": ModifiedHuber}
    return look_up("loss", name, {**_BY_CLASS, **usual, "squared_error": Squared}, "a Loss")()
