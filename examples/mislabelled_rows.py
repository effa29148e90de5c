"""Find mislabelled rows: a bandit comes to draw the rows whose gradients stay large, and wrong labels are among them.

Labels of breast_cancer and of a pair of digits are flipped at random; rows are then ranked by `importance_`. Prints the
precision: the share of truly flipped rows among as many top-ranked rows as were flipped.
"""

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from banditgrad.linear_model import BanditClassifier

FLIPPED, SEEDS = 0.05, range(10)


def load():
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast_cancer", StandardScaler().fit_transform(X), y
    X, y = load_digits(return_X_y=True)
    pair = np.isin(y, (3, 8))
    yield "digits, 3 or 8", X[pair] / 16, (y[pair] == 8).astype(int)


def precision(X, y, seed):
    """Flip labels, fit, and look at the rows of the highest importance."""
    rng = np.random.default_rng(seed)
    flipped = rng.choice(len(y), round(FLIPPED * len(y)), replace=False)
    noisy = y.copy()
    noisy[flipped] = 1 - noisy[flipped]
    model = BanditClassifier(alpha=1e-2, random_state=seed).fit(X, noisy)
    suspects = np.argsort(model.importance_)[-len(flipped) :]
    return np.isin(suspects, flipped).mean()


def main():
    table = Table("data", "rows", "precision", "by chance")
    for name, X, y in load():
        found = [precision(X, y, seed) for seed in SEEDS]
        table.add_row(name, str(len(y)), f"{np.mean(found):.2f} ± {np.std(found):.2f}", f"{FLIPPED:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
