"""The study of benchmarks/torch_study.py: its rival, its runs, its journal and its verdicts."""

import math

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
pytest.importorskip("matplotlib", reason='matplotlib is not installed: pip install "banditgrad[viz]"')
import torch
from torch import nn
from torch.utils.data import TensorDataset

import torch_study
from banditgrad.torch import cross_entropy_bound
from study.contenders import all_contenders
from study.infobatch import InfoBatch
from study.journal import Journal
from study.rivals import random_pruning, shuffling
from study.tasks import TASKS, Task, cross_entropies
from study.training import train
from study.verdict import budget_needed, limited_by_samples, row

N, BATCH, EPOCHS = 240, 16, 4


@pytest.fixture(scope="module")
def tiny():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(N, 4, generator=rng)
    y = (x[:, 0] > 1.0).long()
    data = TensorDataset(x, y)
    return Task(
        "tiny", "tiny", data, data, y.numpy(), y.numpy(), lambda: nn.Linear(4, 2), "sgd", (0.1, 0.3), BATCH, EPOCHS,
        cross_entropies, cross_entropy_bound, classes=True,
    )  # fmt: skip


def test_infobatch_keeps_the_sum_of_weights_and_ends_with_all():
    rng = np.random.default_rng(0)
    losses = torch.from_numpy(rng.exponential(size=N)).float()
    rival = InfoBatch(N, BATCH, epochs=8, ratio=0.5, delta=0.875, seed=0)
    sums, sizes = [], []
    for _ in range(8):
        idx = torch.tensor([i for batch in rival for i in batch])
        assert len(set(idx.tolist())) == len(idx)
        sums.append(float((rival.weights(idx) * losses[idx]).sum()))
        sizes.append(len(idx))
        rival.update(torch.arange(N), losses)
    below = int((losses < losses.mean()).sum())
    assert sizes == [N, *[N - below // 2] * 6, N]  # all are alike at first
    kept = losses[losses >= losses.mean()].sum()
    assert np.mean(sums[1:7]) == pytest.approx(float(losses.sum()), abs=0.1 * float(losses.sum() - kept))


@pytest.mark.parametrize("contender", all_contenders(), ids=lambda contender: contender.name)
def test_a_run_of_every_contender(contender, tiny):
    outcome = train(tiny, contender, 0.3, seed=0)
    budget = next((float(word) for word in contender.name.split() if word[0].isdigit()), 1.0)
    full = EPOCHS * N
    if contender.name == "InfoBatch" or "gain" in contender.name:
        assert 0.3 * full < outcome.end.samples <= full
    else:
        assert outcome.end.samples == pytest.approx(budget * full, abs=BATCH)
    assert outcome.end.loss < 0.8 * outcome.looks[0].loss
    assert outcome.end.macro < outcome.looks[0].macro
    assert np.all(np.diff([look.samples for look in outcome.looks]) > 0)
    assert np.all(np.diff([look.seconds for look in outcome.looks]) > 0)
    assert train(tiny, contender, 0.3, seed=0).end.loss == outcome.end.loss
    assert (outcome.adaptive == 1.0) == ("no guard" in contender.name)


def test_a_study_goes_on_where_it_was(tiny, tmp_path, monkeypatch):
    path = tmp_path / "study.jsonl"
    study = torch_study.Study(Journal(path), 1.0, 1.0, math.inf)
    contenders = [shuffling(), shuffling(0.5), random_pruning()]
    quiet = torch_study.Console(quiet=True)
    study.run([tiny], contenders[:2], 1, quiet)
    lines = path.read_text()
    tuned = lines.count("\n") - 2
    assert tuned >= 2 * 4  # two budgets, at least two step sizes that were given and two that are finer
    path.write_text(lines + lines.splitlines()[-1][:40])  # stopped while a line was written
    again = torch_study.Study(Journal(path), 1.0, 1.0, math.inf)
    monkeypatch.setattr(torch_study, "train", lambda task, contender, *rest: pytest.fail(contender.name))
    again.run([tiny], contenders[:2], 1, quiet)
    assert path.read_text() == lines
    monkeypatch.undo()
    again.run([tiny], contenders, 1, quiet)
    ((name, rows, ladder, _),) = torch_study.tables(torch_study.runs_of(Journal(path), 1.0, 1.0))
    assert (name, list(rows), sorted(ladder)) == ("tiny", [one.name for one in contenders], [0.5, 1.0])
    monkeypatch.setattr("study.journal.sources", lambda ours: "other code")
    assert not Journal(path).outcomes


def test_what_an_end_is_worth_in_samples_of_shuffling():
    ladder = {0.5: 0.8, 1.0: 0.4, 2.0: 0.2}
    assert budget_needed(ladder, 0.4) == 1.0
    assert budget_needed(ladder, 0.3) == pytest.approx(math.sqrt(2.0))
    assert budget_needed(ladder, 0.9) == 0.5
    assert budget_needed(ladder, 0.1) == pytest.approx(2.0**1.5)  # the last line goes on
    assert budget_needed(ladder, -9.0) == 4.0
    assert limited_by_samples(ladder)
    assert not limited_by_samples({0.5: 0.401, 1.0: 0.4})


def test_rows_are_beside_the_baseline(tiny):
    base, half = (train(tiny, shuffling(budget), 0.3, 0) for budget in (1.0, 0.5))
    both = row([base], [base]), row([half], [base])
    assert (both[0].share, both[0].reached) == (1.0, 1.0)
    assert both[1].share == pytest.approx(0.5, abs=BATCH / N)
    assert both[1].reached == math.inf
    assert math.isnan(both[0].promised)


def test_tasks_have_names_that_can_be_asked_for():
    assert len(TASKS) == 8
    made = TASKS["recommender"](0.02)
    assert made.name == "recommender"
    assert len(made.train) == len(made.groups) == 2000
