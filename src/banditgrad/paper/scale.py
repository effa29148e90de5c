"""How much to run: every number of the evaluation in one place. The defaults are the paper's."""

from dataclasses import dataclass, replace

REAL_SETS = ("w8a", "ijcnn1")
RIVALS = ("uniform", "IS")
PAPER_SAMPLERS = (*RIVALS, "MABS")  # what the paper compares
BOUND = "MABS (δ from the bound)"
TENFOLD = "MABS (10 δ)"  # a reading of figure 1
BEYOND = (BOUND, "VRB", "RecentNorm")  # what is shown beside it

_STEPS = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """Repeats k, lengths T and grids. Samplers that the paper does not have get a fraction of the repeats."""

    name: str = "the paper's"
    figure1_repeats: int = 200
    figure2_repeats: int = 100
    figure3_repeats: int = 50
    text_repeats: int = 5
    beyond: tuple[str, ...] = BEYOND
    beyond_share: float = 0.1

    taus: tuple[float, ...] = (3.7, 6.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 78.0, 83.9)
    figure1_steps: int = 3000
    other_sets: int = 10  # further draws of the synthetic sets, with a tenth of the repeats

    figure2_passes: int = 30
    figure3_passes: int = 60
    figure3_steps: tuple[tuple[str, tuple[float, ...]], ...] = (
        ("SGD", (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)),
        ("Prox-SVRG", _STEPS),
        ("SAGA", _STEPS),
    )
    figure3_beyond: bool = True

    s2gd_passes: tuple[int, ...] = (2, 5, 10, 30, 60)
    sqn_passes: tuple[tuple[int, float], ...] = ((1, 0.5), (10, 5.0), (50, 30.0))  # by batch size; a step costs O(M d)
    sqn_hessian_batches: tuple[int, ...] = (300, 1000)
    text_synthetic: bool = True

    theorem_repeats: int = 3
    theorem_records: int = 120

    time_rows: int = 50_000
    time_features: int = 4_000
    time_rounds: int = 8

    def with_repeats(self, repeats: int) -> "Scale":
        """The same with k repeats everywhere."""
        if repeats < 1:
            raise ValueError(f"The number of repeats must be at least 1, got {repeats}.")
        fewer = min(self.text_repeats, repeats)
        return replace(
            self,
            figure1_repeats=repeats,
            figure2_repeats=repeats,
            figure3_repeats=repeats,
            text_repeats=fewer,
            theorem_repeats=min(self.theorem_repeats, repeats),
        )

    def repeats(self, sampler: str, k: int) -> int:
        """How often a sampler is run where the paper's are run k times."""
        return k if sampler in (*PAPER_SAMPLERS, TENFOLD) else max(1, round(self.beyond_share * k))


PAPER = Scale()
QUICK = Scale(
    name="quick",
    figure1_repeats=20,
    figure2_repeats=2,
    figure3_repeats=1,
    text_repeats=1,
    taus=(3.7, 10.0, 30.0, 60.0, 83.9),
    other_sets=3,
    figure3_passes=20,
    figure3_steps=(
        ("SGD", (0.1, 0.2, 0.5, 1.0, 5.0)),
        ("Prox-SVRG", (0.5, 1.0, 2.0, 5.0, 10.0)),
        ("SAGA", (0.2, 0.5, 1.0, 3.0, 10.0)),
    ),
    figure3_beyond=False,
    s2gd_passes=(5, 10),
    sqn_passes=((10, 0.5), (50, 5.0)),
    sqn_hessian_batches=(300,),
    theorem_repeats=1,
    theorem_records=30,
    time_rows=5_000,
    time_rounds=3,
)
