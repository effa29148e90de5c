"""How far models of F are trusted: by what the last of them predicted, and what came of it."""

import math
from collections import deque
from dataclasses import dataclass, field

CLOSER = 0.1  # a step that predicts less than this share of what the one before did has come near the minimum
STALLED = 0.5  # a step that predicts more than this share of what the one before did has come no nearer
PATIENCE = 8  # steps without a sample: if the last predicts more than CLOSER of the first, they do not come near
FEW_ROWS = 0.75  # a ratio below this, of a step that came no nearer, is that of a model of too few rows
BAD, GOOD = 0.25, 0.75  # a model with a ratio below was too bold, one above may be bolder
CAUTION = 0.02  # the first
LONGEST = 8  # steps that a model is asked to be right for before it may be bolder


@dataclass
class Trust:
    """What the last steps showed of their models."""

    predicted: float = math.inf  # decrease of F, by the last model
    ratio: float = 1.0  # of the actual decrease to the predicted one
    caution: float = 0.0  # the least second derivative that models assume, as a share of the loss's largest
    careless: float = 1e-3  # what caution falls to 0 from
    most: float = 1.0  # caution
    asked: int = 1  # steps for which a model must be right before it may be bolder, doubled when it was so too early
    right: int = 0  # steps in a row for which it was
    bolder: bool = False  # whether the last model was
    exact: bool = False  # whether the next model is to be of all rows
    wasted: float = 0.0  # on samples that led no nearer, in evaluations of all rows
    failures: int = 0  # steps that gained next to nothing of what a model of all rows predicted
    idle: int = 0  # steps in a row that predicted only rounding
    vMv: float = math.inf  # <v, M v> of the last step v and its model's Hessian M
    predictions: deque[float] = field(default_factory=lambda: deque(maxlen=PATIENCE + 1))  # of the last steps

    @property
    def near(self) -> bool:
        """Whether the last step came near the minimum, as Newton's do where F is like its models."""
        return len(self.predictions) > 1 and self.predictions[-1] <= CLOSER * self.predictions[-2]

    @property
    def slow(self) -> bool:
        """Whether many steps did not come near."""
        return len(self.predictions) > PATIENCE and self.predicted > CLOSER * self.predictions[0]

    def too_few_rows(self, before: float) -> bool:
        """Whether a model did not keep its prediction and led no nearer; `before` is the prediction before this one."""
        return self.predicted > CLOSER * before and self.ratio < FEW_ROWS

    def compare(self, decrease: float) -> None:
        """The actual decrease with the predicted one."""
        self.ratio = decrease / self.predicted if self.predicted > 0.0 else 1.0

    def raise_caution(self) -> None:
        """After a model that was too bold."""
        self.asked = min(2 * self.asked, LONGEST) if self.bolder else self.asked
        self.caution, self.right, self.bolder = min(max(4.0 * self.caution, CAUTION), self.most), 0, False

    def earn_boldness(self) -> None:
        """After a model that was right: otherwise every second one may be too bold, where each leads to another."""
        self.right, self.bolder = self.right + 1, False
        if self.right >= self.asked or self.near:
            self.bolder = self.caution > 0.0
            self.relax_caution()

    def relax_caution(self) -> None:
        self.caution, self.right = self.caution / 4.0 if self.caution > self.careless else 0.0, 0
