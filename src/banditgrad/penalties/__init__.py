"""Penalties λ r(w): of one coordinate at a time, and of groups of them."""

from banditgrad.penalties.checking import as_penalty, has_closed_form, strength_of, with_strength
from banditgrad.penalties.form import Form, form_of
from banditgrad.penalties.groups import GroupLasso, SparseGroupLasso, VectorPenalty
from banditgrad.penalties.separable import L1, ElasticNet, Penalty, SquaredL2, Zero
from banditgrad.penalties.weighted import Box, Weighted

__all__ = [
    "L1",
    "Box",
    "ElasticNet",
    "Form",
    "GroupLasso",
    "Penalty",
    "SparseGroupLasso",
    "SquaredL2",
    "VectorPenalty",
    "Weighted",
    "Zero",
    "as_penalty",
    "form_of",
    "has_closed_form",
    "strength_of",
    "with_strength",
]
