"""Plain NumPy oracles: the paper's formulas as loops, slow and obvious."""

import numpy as np


def loss_value(name, z, y):
    return {
        "Logistic": lambda: np.logaddexp(0.0, -y * z),
        "SquaredHinge": lambda: np.maximum(0.0, 1.0 - y * z) ** 2,
        "Squared": lambda: 0.5 * (z - y) ** 2,
        "Huber": lambda: np.where(abs(z - y) <= 1.35, 0.5 * (z - y) ** 2, 1.35 * (abs(z - y) - 0.675)),
    }[name]()


def loss_derivative(name, z, y):
    return {
        "Logistic": lambda: -y / (1.0 + np.exp(y * z)),
        "SquaredHinge": lambda: -2.0 * y * np.maximum(0.0, 1.0 - y * z),
        "Squared": lambda: z - y,
        "Huber": lambda: np.clip(z - y, -1.35, 1.35),
    }[name]()


def loss_second_derivative(name, z, y):
    return {
        "Logistic": lambda: 1.0 / ((1.0 + np.exp(y * z)) * (1.0 + np.exp(-y * z))),
        "SquaredHinge": lambda: 2.0 * (y * z < 1.0),
        "Squared": lambda: np.ones_like(z),
        "Huber": lambda: 1.0 * (abs(z - y) <= 1.35),
    }[name]()


def soft(w, threshold):
    return np.sign(w) * np.maximum(abs(w) - threshold, 0.0)


def with_intercept(X, fit_intercept):
    return np.hstack([X, np.ones((len(X), 1))]) if fit_intercept else X


def sgd(X, y, loss, l1, l2, gamma, draws, p, penalised, batch=1):
    """Equation (2). Returns w and 2/(T(T+1)) Σ t w^t."""
    n, d = X.shape
    w, weighted = np.zeros(d), np.zeros(d)
    mask = (np.arange(d) < penalised).astype(float)
    steps = len(draws) // batch
    for t in range(1, steps + 1):
        weighted += t * w
        g = np.zeros(d)
        for i in draws[(t - 1) * batch : t * batch]:
            g += loss_derivative(loss, X[i] @ w, y[i]) * X[i] / (n * p[i]) / batch
        w = w - gamma(t) * (g + mask * (l1 * np.sign(w) + l2 * w))
    return w, weighted * 2.0 / (steps * (steps + 1))


def prox_sgd(X, y, loss, l1, l2, gamma, draws, p, penalised, batch=1):
    """Equation (17) with ψ = ½‖w‖²."""
    n, d = X.shape
    w = np.zeros(d)
    for t in range(1, len(draws) // batch + 1):
        g = np.zeros(d)
        for i in draws[(t - 1) * batch : t * batch]:
            g += loss_derivative(loss, X[i] @ w, y[i]) * X[i] / (n * p[i]) / batch
        w = w - gamma(t) * g
        w[:penalised] = soft(w[:penalised], gamma(t) * l1) / (1.0 + gamma(t) * l2)
    return w


def prox(w, gamma, l1, l2, penalised):
    w = w.copy()
    w[:penalised] = soft(w[:penalised], gamma * l1) / (1.0 + gamma * l2)
    return w


def saga(X, y, loss, l1, l2, gamma, draws, p, penalised):
    """SAGA, its table filled at w = 0."""
    n, d = X.shape
    w = np.zeros(d)
    slopes = loss_derivative(loss, X @ w, y)
    for i in draws:
        slope = loss_derivative(loss, X[i] @ w, y[i])
        estimate = (slope - slopes[i]) * X[i] / (n * p[i]) + X.T @ slopes / n
        slopes[i] = slope
        w = prox(w - gamma * estimate, gamma, l1, l2, penalised)
    return w


def svrg(X, y, loss, l1, l2, gamma, draws, p, penalised, lengths, mean):
    """SVRG with bins of the given lengths; the snapshot is the mean of a bin's iterates or the last."""
    n, d = X.shape
    w = snapshot = np.zeros(d)
    draws = iter(draws)
    for length in lengths:
        full = X.T @ loss_derivative(loss, X @ snapshot, y) / n
        total = np.zeros(d)
        for _ in range(length):
            i = next(draws, None)
            if i is None:
                return w
            change = loss_derivative(loss, X[i] @ w, y[i]) - loss_derivative(loss, X[i] @ snapshot, y[i])
            w = prox(w - gamma * (change * X[i] / (n * p[i]) + full), gamma, l1, l2, penalised)
            total += w
        snapshot = total / length if mean else w
    return w


def gradient_of_half_squared_norm(v, p):
    norm = np.linalg.norm(v, p)
    return np.sign(v) * abs(v) ** (p - 1.0) * norm ** (2.0 - p) if norm > 0.0 else 0.0 * v


def p_norm_sgd(X, y, loss, l1, gamma, draws, p, norm, w):
    """Equation (17) with ψ = ½‖w‖_norm²: a soft threshold in the dual."""
    n = len(X)
    dual_norm = norm / (norm - 1.0)
    for t, i in enumerate(draws, start=1):
        g = loss_derivative(loss, X[i] @ w, y[i]) * X[i] / (n * p[i])
        theta = soft(gradient_of_half_squared_norm(w, norm) - gamma(t) * g, gamma(t) * l1)
        w = gradient_of_half_squared_norm(theta, dual_norm)
    return w


def mabs(n, draws, feedback, eta, delta, q=None):
    """Algorithm 1 (2 with q), with x clipped at 1; yields p^t before each draw i_t."""
    q = np.full(n, 1.0 / n) if q is None else q
    w = np.ones(n)
    for i, a in zip(draws, feedback, strict=True):
        p = (1.0 - eta) * w / w.sum() + eta * q
        yield p
        w[i] *= np.exp(min(delta * a / p[i] ** 3, 1.0))


def bfgs(pairs):
    """The inverse BFGS matrix of pairs (s, y), oldest first, by explicit updates."""
    s, y = pairs[-1]
    identity = np.eye(len(s))
    H = (s @ y) / (y @ y) * identity
    for s, y in pairs:
        rho = 1.0 / (s @ y)
        H = (identity - rho * np.outer(s, y)) @ H @ (identity - rho * np.outer(y, s)) + rho * np.outer(s, s)
    return H


def sqn(X, y, loss, l1, l2, gamma, draws, p, penalised, batch, hessian_draws, every, memory):
    """Stochastic quasi-Newton; `hessian_draws` has one row of indices per pair."""
    n, d = X.shape
    w, iterates, means, pairs = np.zeros(d), [], [], []
    mask = (np.arange(d) < penalised).astype(float)
    for t in range(1, len(draws) // batch + 1):
        v = mask * (l1 * np.sign(w) + l2 * w)
        for i in draws[(t - 1) * batch : t * batch]:
            v = v + loss_derivative(loss, X[i] @ w, y[i]) * X[i] / (n * p[i]) / batch
        iterates.append(w)
        w = w - gamma(t) * (bfgs(pairs[-memory:]) @ v if pairs and t > 2 * every else v)
        if t % every == 0:
            means.append(np.mean(iterates[-every:], axis=0))
            if len(means) > 1:
                s, A = means[-1] - means[-2], X[hessian_draws[len(means) - 2]]
                curve = loss_second_derivative(loss, A @ means[-1], y[hessian_draws[len(means) - 2]])
                pairs.append((s, A.T @ (curve * (A @ s)) / len(A) + l2 * mask * s))
    return w
