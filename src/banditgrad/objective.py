"""F(w) = (1/n) Σ_i φ_i(w) + λ r(w), equation (1), as compiled loops ask for it: its terms, and one look at all rows."""

import numpy as np

from banditgrad._jit import inline

# What is kept of a row at the point where it was last looked at: φ_i' and the margin.
TABLE = np.dtype([("slope", "f8"), ("margin", "f8")])


@inline
def mean_term(parts, scratch, w):
    """f(w) = (1/n) Σ_i φ_i(w)."""
    n, total, zero = parts.norms2.size, 0.0, True
    for j in range(w.size):
        zero = zero and w[j] == 0.0
    for i in range(n):
        total += parts.terms.term_at(parts.rows, scratch, w, i, zero)  # at zero no row need be read
    return total / n


@inline
def full_gradient(parts, scratch, w, table, g, with_value):
    """g = ∇f(w), and the rows' slopes and margins into the table; returns f(w) where that is asked for, else 0."""
    n, total = parts.norms2.size, 0.0
    for j in range(g.size):
        g[j] = 0.0
    for i in range(n):
        total += parts.terms.add_gradient(parts.rows, scratch, w, table, i, n, g, with_value)
    return total / n
