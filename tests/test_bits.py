"""Same seed, same bits, on the machine where they were recorded: a part of what `python tests/bits.py` compares."""

import pytest

import bits


@pytest.mark.parametrize("name", bits.chosen_cases())
def test_w_has_the_recorded_bits(name):
    machine, digests = bits.recorded()
    differs = [
        f"{key} {value}, recorded with {machine.get(key)}"
        for key, value in bits.signature().items()
        if machine.get(key) != value
    ]
    if differs:
        pytest.skip("; ".join(differs))
    assert bits.cases()[name].digest() == digests[name], (
        "if this is meant, renew bits.json: python tests/bits.py --write"
    )


def test_all_cases_are_recorded():
    assert list(bits.recorded()[1]) == list(bits.cases())
