"""The evaluation in miniature: small sets in place of the real ones, few runs, and few kinds of compiled loops."""

from banditgrad.datasets import make_imbalanced
from banditgrad.paper import Cases, Scale
from banditgrad.paper.scale import BOUND

SIZES = {"w8a": (300, 20, 1.0), "ijcnn1": (240, 12, 0.3)}  # rows, features, tail

SCALE = Scale(
    name="tiny",
    figure1_repeats=3,
    figure2_repeats=3,
    figure3_repeats=2,
    text_repeats=2,
    beyond=(BOUND,),
    taus=(3.7, 30.0, 83.9),
    figure1_steps=200,
    other_sets=1,
    figure2_passes=3,
    figure3_passes=2,
    figure3_steps=(("SGD", (0.1, 5.0)), ("Prox-SVRG", (0.5, 5.0)), ("SAGA", (0.5, 5.0))),
    s2gd_passes=(2,),
    sqn_passes=((10, 1.0),),
    sqn_hessian_batches=(20,),
    text_synthetic=False,
    theorem_repeats=1,
    theorem_records=4,
    time_rows=200,
    time_features=40,
    time_rounds=1,
)


def cases():
    def load(name):
        n, d, tail = SIZES[name]
        return make_imbalanced(n, d, 5, positive=0.3, tail=tail, seed=len(name))

    return Cases(load)
