from itertools import combinations

import numpy as np
import pytest

from banditgrad.report import Curve
from banditgrad.report.palette import SAMPLERS, assign_styles

# How a colour is seen by those who lack one kind of cone: Machado, Oliveira and Fernandes (2009), severity 1.
SIGHT = {
    "all cones": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(light):
    xyz = TO_XYZ @ np.clip(light, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    low, high = sorted(TO_XYZ[1] @ linear(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def styles_of(*names):
    return assign_styles(Curve(name, [1], [1]) for name in names)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("ground", ["#ffffff", "#14171b"])
def test_samplers_are_told_apart_by_colour(sight, ground):
    colours = [style.colour if ground == "#ffffff" else style.dark_colour for style in SAMPLERS.values()]
    seen = [lab(SIGHT[sight] @ linear(colour)) for colour in colours]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 12
    assert min(contrast(colour, ground) for colour in colours) > 2.2


def test_samplers_are_told_apart_in_grey():
    assert len({(style.dash, style.marker) for style in SAMPLERS.values()}) == len(SAMPLERS)


def test_a_sampler_has_its_style_in_any_company():
    alone = styles_of("MABS")["MABS"]
    assert styles_of("mine", "uniform", "MABS", "yours")["MABS"] == alone == styles_of("mabs")["mabs"]
    assert styles_of("IS")["IS"] == styles_of("importance")["importance"]


def test_unknown_names_get_styles_of_their_own():
    names = [f"sampler {number}" for number in range(20)]
    styles = styles_of("uniform", *names, "MABS")
    assert len(set(styles.values())) == 22
    assert len({(style.dash, style.marker) for style in styles.values()}) == 22
    assert styles == styles_of("uniform", *names, "MABS")
    assert styles["sampler 0"].colour not in (styles["uniform"].colour, styles["MABS"].colour)


def test_a_curve_may_take_a_samplers_colour():
    curves = [Curve(f"{solver} with MABS", [1], [1], like="MABS") for solver in ("SAGA", "SGD")]
    saga, sgd = assign_styles(curves).values()
    assert saga == SAMPLERS["mabs"]
    assert sgd.colour == saga.colour
    assert (sgd.dash, sgd.marker) != (saga.dash, saga.marker)
