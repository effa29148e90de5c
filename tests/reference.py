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
        w = prox(w - gamma(t) * g, gamma(t), l1, l2, penalised)
    return w


def structured_prox(name, d, coordinates):
    """That of `tables.structured(d)`, formula by formula: of w and a step, or a step for each coordinate. `coordinates`
    are features by margins; margins are alike."""
    margins = coordinates // d
    factors, groups = np.arange(d) % 3 / 2.0, np.arange(d) // 3
    each = lambda values: np.repeat(values, margins)  # noqa: E731

    def net(w, step, l1, l2):
        return soft(w, step * l1) / (1.0 + step * l2)

    def of_groups(w, step, mu, sets, l1=0.0):
        u = soft(w, step * l1)
        s = np.broadcast_to(step, w.shape)
        for chosen, weight in sets:
            v = u[chosen]
            if np.linalg.norm(v / s[chosen]) <= mu * weight:
                u[chosen] = 0.0
                continue
            low, high = 0.0, np.linalg.norm(v)  # t = ‖u‖ by bisection
            for _ in range(200):
                t = 0.5 * (low + high)
                inside = np.sum((v / (t + s[chosen] * mu * weight)) ** 2) > 1.0
                low, high = (t, high) if inside else (low, t)
            u[chosen] = v * t / (t + s[chosen] * mu * weight)
        return u

    def sets(of, weights):
        return [(np.flatnonzero(each(of == b)), weight) for b, weight in weights]

    by_label = sets(groups, [(b, np.sqrt(np.sum(groups == b))) for b in np.unique(groups)])
    two = np.full(d, -1)
    two[[0, d - 1]], two[[2, 3]] = 0, 1
    return {
        "Weighted(L1)": lambda w, s: net(w, s, 0.03 * each(factors), 0.0),
        "Weighted(SquaredL2)": lambda w, s: net(w, s, 0.0, 0.05 * each(factors)),
        "Weighted(ElasticNet)": lambda w, s: net(w, s, 0.024 * each(factors), 0.036 * each(factors)),
        "Box": lambda w, s: np.clip(w, -0.1, each(np.linspace(0.0, 0.3, d))),
        "Box(L1)": lambda w, s: np.maximum(w - s * 0.01, 0.0),
        "Box(Weighted)": lambda w, s: np.clip(net(w, s, 0.015 * each(factors), 0.015 * each(factors)), -0.2, 0.2),
        "GroupLasso": lambda w, s: of_groups(w, s, 0.03, by_label),
        "GroupLasso(weights)": lambda w, s: of_groups(w, s, 0.05, sets(two, [(0, 0.5), (1, 2.0)])),
        "SparseGroupLasso": lambda w, s: of_groups(w, s, 0.03, by_label, 0.02),
    }[name]


def structured_cost(name, d, w):
    """Likewise, within bounds."""
    margins = w.size // d
    factors, groups = np.repeat(np.arange(d) % 3 / 2.0, margins), np.repeat(np.arange(d) // 3, margins)
    norms = [np.linalg.norm(w[groups == b]) * np.sqrt(np.sum(groups == b) / margins) for b in np.unique(groups)]
    rows = w.reshape(d, margins)
    two = 0.5 * np.linalg.norm(rows[[0, d - 1]]) + 2.0 * np.linalg.norm(rows[[2, 3]])
    l1, l2 = np.sum(factors * abs(w)), np.sum(factors * w**2) / 2.0
    return {
        "Weighted(L1)": 0.03 * l1,
        "Weighted(SquaredL2)": 0.05 * l2,
        "Weighted(ElasticNet)": 0.024 * l1 + 0.036 * l2,
        "Box": 0.0,
        "Box(L1)": 0.01 * np.sum(abs(w)),
        "Box(Weighted)": 0.015 * l1 + 0.015 * l2,
        "GroupLasso": 0.03 * np.sum(norms),
        "GroupLasso(weights)": 0.05 * two,
        "SparseGroupLasso": 0.03 * np.sum(norms) + 0.02 * np.sum(abs(w)),
    }[name]


def proximal_gradient(gradient, prox, w, step, steps):
    """Accelerated, begun anew where it turns back (Beck and Teboulle 2009; O'Donoghue and Candès 2015)."""
    v, t = w, 1.0
    for _ in range(steps):
        new = prox(v - step * gradient(v), step)
        if (v - new) @ (new - w) > 0.0:
            t = 1.0
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        v, w, t = new + (t - 1.0) / after * (new - w), new, after
    return w


def prox(w, gamma, l1, l2, penalised):
    w = w.copy()
    if callable(l1):
        w[:penalised] = l1(w[:penalised], gamma)
        return w
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
