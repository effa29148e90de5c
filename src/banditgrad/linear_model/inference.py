"""Standard errors of coefficients, from the curvature of the likelihood at the solution.

With margins z_i = <x_i, w> + b, Fisher's information of independent rows is I = Σ_i s_i v(z_i) x_i x_iᵀ, where v is the
variance of what a row's likelihood has for a slope. An l2 penalty adds Λ = Σ_i s_i · alpha on the diagonal, but for the
intercept, and the covariance of (w, b) is φ (I + Λ)⁻¹: without a penalty that of maximum likelihood, with one that of
the posterior for which the penalty is a normal prior. The dispersion φ is 1 for classes and counts, and else Pearson's,
Σ_i s_i (y_i - μ_i)² / V(μ_i) over Σ_i s_i - tr((I + Λ)⁻¹ I).
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf
from scipy.special import expit, ndtr
from sklearn.utils.validation import check_is_fitted, validate_data

from banditgrad._frames import as_frame
from banditgrad._names import shown
from banditgrad.registry import GROUPED

Vector = NDArray[np.float64]

MOST = 5000  # coefficients: their covariance is a matrix
INTERCEPT = "(intercept)"
POWERS = {"squared_error": 0.0, "poisson": 1.0, "gamma": 2.0}  # of the mean, in the variance V(μ)
DEPENDENT = 1e-12  # a column of which the others leave so little, of its square, is a sum of them


def coefficient_table(
    model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
) -> Any:
    """The table of `BanditClassifier.summary`; X, y and weights are what the model was fitted to."""
    check_is_fitted(model)
    _expect_likelihood(model)
    X = validate_data(model, X, accept_sparse="csr", dtype=np.float64, reset=False)
    y = np.asarray(y)
    if y.shape != (X.shape[0],):
        raise ValueError(f"y must have shape ({X.shape[0]},), one entry per row of X, got {y.shape}.")
    weights = model._weights(y, sample_weight)
    s = np.ones(X.shape[0]) if weights is None else np.asarray(weights, np.float64)
    design = _with_ones(X) if model.fit_intercept else X
    ridge = np.zeros(design.shape[1])
    if model.penalty is not None:
        ridge[: X.shape[1]] = s.sum() * model._strength(X.shape[0], weights)
        ridge[: X.shape[1]] *= 1.0 if model.penalty_factor is None else np.asarray(model.penalty_factor, np.float64)
        if model.standardize:
            ridge[: X.shape[1]] *= model._scaling(X, weights).deviation ** 2
    names = [*getattr(model, "feature_names_in_", (f"x{j}" for j in range(X.shape[1])))]
    names += [INTERCEPT] if model.fit_intercept else []
    margins = np.asarray(X @ np.atleast_2d(model.coef_).T + model.intercept_)
    margins += 0.0 if offset is None else np.asarray(offset, np.float64)[:, None]
    coef = np.column_stack([np.atleast_2d(model.coef_), model.intercept_]) if model.fit_intercept else model.coef_
    errors = [_errors(model, design, y, s, z, ridge, names) for z in margins.T]
    classes = model.classes_.tolist() if len(errors) > 1 else None
    return _table(model, names, np.atleast_2d(coef), np.array(errors), classes)


def _expect_likelihood(model: Any) -> None:
    kind = type(model).__name__
    known = ("log_loss", "squared_error", "poisson", "gamma", "tweedie")
    if model.loss not in known:
        raise ValueError(
            f"{kind}: loss={shown(model.loss)} is no likelihood, from which standard errors could come. They come with "
            f"{', '.join(known)}; for others take a bootstrap."
        )
    if getattr(model, "_is_multinomial", False):
        raise ValueError(
            f"{kind}: of several classes that are one problem the rows tell only how coefficients differ. Take "
            'multi_class="ovr", for which each class has its own table.'
        )
    if model.penalty == "l1" or (model.penalty == "elasticnet" and model.l1_ratio > 0.0):
        raise ValueError(
            f"{kind}: an l1 norm sets coefficients to exactly zero, and such have no standard errors. Fit the features "
            'that it chose with penalty="l2" or None, on other rows.'
        )
    if model.penalty in GROUPED or model.positive or model.bounds is not None:
        raise ValueError(
            f"{kind}: there are no standard errors with groups, which set coefficients to zero, nor with bounds. "
            'Fit the features that were chosen with penalty="l2" or None, on other rows.'
        )
    if model.n_features_in_ >= MOST:
        raise ValueError(
            f"{kind}: the covariance of {model.n_features_in_:,} coefficients is too large. Choose fewer than {MOST:,}."
        )


def _with_ones(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    return sp.hstack([X, sp.csr_array(ones)], format="csr") if sp.issparse(X) else np.hstack([X, ones])


def _errors(model: Any, design: Any, y: Any, s: Vector, z: Vector, ridge: Vector, names: list[str]) -> Vector:
    information = _gram(design, s * _information(model, z))
    inverse = _inverse(information + np.diag(ridge), names)
    return np.asarray(np.sqrt(_dispersion(model, y, s, z, np.sum(inverse * information)) * np.diag(inverse)))


def _information(model: Any, z: Vector) -> Vector:
    """v(z): μ (1 - μ) for log-odds, μ^(2 - p) for a mean μ = exp(z) with variance φ μ^p, and 1 for squares."""
    if model.loss == "log_loss":
        return np.asarray(expit(z) * expit(-z))
    if model.loss == "squared_error":
        return np.ones_like(z)
    return np.asarray(np.exp((2.0 - POWERS.get(model.loss, model.power)) * z))


def _dispersion(model: Any, y: Any, s: Vector, z: Vector, used: float) -> float:
    if model.loss in ("log_loss", "poisson"):
        return 1.0
    power = POWERS.get(model.loss, model.power)
    mean = z if model.loss == "squared_error" else np.exp(z)
    left = float(s.sum()) - used
    if left <= 0.0:
        raise ValueError(
            f"{z.size:,} rows are all used up by the coefficients: nothing is left to tell the noise from."
        )
    return float(np.sum(s * (y - mean) ** 2 / mean**power)) / left


def _gram(design: Any, weights: Vector) -> Vector:
    if sp.issparse(design):
        return np.asarray((design.T @ design.multiply(weights[:, None]).tocsr()).toarray())
    return np.asarray(design.T @ (weights[:, None] * design))


def _inverse(matrix: Vector, names: list[str]) -> Vector:
    """Of a positive definite matrix, whose diagonal is brought to 1 first: columns may be in any unit."""
    unit = np.sqrt(np.diag(matrix))
    safe = np.where(unit > 0.0, unit, 1.0)
    scaled = matrix / safe / safe[:, None]
    _, pivots, rank, _ = dpstrf(scaled, tol=DEPENDENT)
    if rank < len(names):
        extra = ", ".join(repr(names[at - 1]) for at in sorted(pivots[rank:])[:8])
        raise ValueError(
            f"The data do not tell all coefficients: given the other columns, nothing is left of {extra}. Drop these, "
            'such as one level of each category, or fit with penalty="l2".'
        )
    return np.asarray(cho_solve(cho_factor(scaled), np.eye(len(names))) / safe / safe[:, None])


def _table(model: Any, names: list[str], coef: Vector, errors: Vector, classes: list[Any] | None) -> Any:
    columns: dict[str, Any] = {}
    if classes is not None:
        columns["class"] = np.repeat(np.array(classes), len(names))
    w, e = coef.ravel(), errors.ravel()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = w / e
        columns |= {"coefficient": w, "standard_error": e, "z": z, "p_value": 2.0 * ndtr(-np.abs(z))}
        if model.loss != "squared_error":
            columns["odds_ratio" if model.loss == "log_loss" else "rate_ratio"] = np.exp(w)
    return as_frame(columns, index=names * len(coef))
