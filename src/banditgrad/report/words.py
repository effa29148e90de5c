"""What a reader of a report needs to know of its terms and contenders, in a line each."""

TERMS = {
    "F": "the objective that is minimised: the mean of the rows' losses and the penalty",
    "F*": "its minimum: the least value that any run met, or a longer one made to find it",
    "pass": "as many draws as there are rows",
    "τ": "how unlike rows are in length: the largest smoothness constant over the mean; 1 where all are alike",
    "variance": "of the solver's gradient estimator: with a half of it, a draw is worth two",
    "optimal": "the least variance that any sampler could have at that point, knowing all gradients",
}

SAMPLERS = {
    "auto": "recent gradient norms where this is measured to pay, else uniform draws",
    "uniform": "every row as often as any other",
    "importance": "rows in proportion to their smoothness constants, known beforehand and fixed",
    "mabs": "the paper's bandit: learns from the gradients it meets which rows lower the variance",
    "vrb": "a rival bandit, by follow-the-regularised-leader",
    "recentnorm": "rows in proportion to the gradient norm seen when they were last drawn",
    "emanorm": "rows in proportion to a moving average of their gradient norms",
    "tracking": "recent gradient norms, mixed with uniform draws by as much as they were found to be wrong",
    "forgettingmabs": "the paper's bandit with a memory that fades",
    "osmd": "mirror descent on the variance",
    "adaosmd": "mirror descent on the variance that finds its rate",
    "avare": "recent gradient norms with a floor that falls over time",
    "safebounds": "bounds on the gradient norms, from how far w has moved since they were seen",
}

SOLVERS = {
    "auto": "the default for these data",
    "sgd": "plain stochastic gradient descent: comes near the minimum, not to it",
    "proxsgd": "stochastic gradient descent with proximal steps: comes near the minimum, not to it",
    "proxsvrg": "a full gradient now and then, and random draws that correct it in between",
    "lsvrg": "as proxsvrg, with full gradients at random moments",
    "s2gd": "as proxsvrg, with inner loops of random length",
    "saga": "a table of the rows' last gradients, corrected by every draw",
    "sqn": "stochastic gradients along a sampled estimate of the curvature",
    "samplednewton": "Newton steps with a curvature from sampled rows; a pass a step",
}
