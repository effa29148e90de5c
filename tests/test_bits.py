"""Same seed, same bits, on the machines where they were recorded: a part of what `python tests/bits.py` compares."""

import pytest

import bits


@pytest.mark.parametrize("name", bits.chosen_cases())
def test_w_has_the_recorded_bits(name):
    digests = bits.recorded_here()
    if digests is None:
        pytest.skip(f"not recorded on {bits.signature()}")
    assert bits.cases()[name].digest() == digests[name], (
        "if this is meant, renew bits.json: python tests/bits.py --write"
    )


def test_all_cases_are_recorded():
    for each in bits.recorded():
        assert list(each["bits"]) == list(bits.cases())
