"""Iterates: w as a solver moves it, on dense rows at once, on sparse rows lazily.

A step changes the coordinates of one row by the gradient, and *all* of them by the penalty or by a mean gradient. A
*lazy* iterate brings a coordinate up to date when a row needs it, by a closed form for the steps it missed. There are
three forms, side by side here:

affine       γ and the mean gradient are constant: one affine map, repeated (SAGA, the snapshot methods)
proximal     γ_t changes, the penalty alone acts: products and sums over steps (ProxSgd)
subgradient  likewise, and coordinates may cross zero; their weighted sum is kept as well (Sgd)

They share when to be lazy, the length of their tables and the way to look at them (`base`), no more: the first keeps a
coordinate, its g and its time in one record, since all are read together, and reads its powers by the *number* of
missed steps; to keep them by the *times* of two steps, as changing γ_t demands, would be slower and round otherwise.
"""
