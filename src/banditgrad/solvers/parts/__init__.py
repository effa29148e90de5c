"""The mechanisms that solvers share.

minibatch           the rows of a step, drawn in blocks, and plain SGD's estimator
bins                how long a snapshot lasts
variance_reduction  the step that SAGA and the snapshot methods share, and the table of slopes and margins
iterates            w on dense rows, and on sparse ones, where coordinates are brought up to date when a row needs them
step_size           rules that find the step while running, and a limit on it
safeguard           looks at F, and the way back
"""
