"""The hopper of dm_control hops in MuJoCo, whose contacts and gravity say so."""

import numpy as np
import pytest
from support.corpora import packaged_model
from support.examples import example, results

HOPS, GRAVITY = 3, 9.81


@pytest.fixture(scope="module")
def hopping(tmp_path_factory):
    packaged_model("dm_control/hopper")  # skips where the package is not installed
    names = example(35)
    assert "You will see" in names["__doc__"]
    main = names["main"]
    short = names | {"main": lambda figure: main(figure, hops=HOPS)}
    return names, results(short, tmp_path_factory.mktemp("hopper"))


@pytest.mark.parametrize("share", [1.0, 1.1])
def test_every_scheduled_hop_is_a_flight_without_a_contact(hopping, share):
    names, runs = hopping
    run = runs[share]
    found, t = run["flights"], run["t"]
    assert len(found) == HOPS
    for i, (first, last, rise, sole) in enumerate(found):
        span = slice(int(first), int(last) + 1)
        assert not np.any(run["contacts"][span])
        flown = t[span.stop - 1] - t[span.start]
        assert flown > names["LEAST_FLIGHT"]
        assert rise > 0.025  # m
        assert sole > 0.05  # m
        begins = names["PERIOD"] * (names["STANDS"] + i * (names["FLIES"] + names["LANDED"]))
        assert abs(t[span.start] - begins) < names["PERIOD"]


@pytest.mark.parametrize("share", [1.0, 1.1])
def test_in_flight_gravity_alone_moves_the_centre_of_mass(hopping, share):
    _, runs = hopping
    run = runs[share]
    for first, last, *_ in run["flights"]:
        span = slice(int(first), int(last) + 1)
        quadratic = np.polyfit(run["t"][span], run["mass"][span], 2)
        assert quadratic[0] == pytest.approx(-GRAVITY / 2, rel=1e-2)


@pytest.mark.parametrize("share", [1.0, 1.1])
def test_every_tick_is_solved_and_the_hopper_stays_where_it_is(hopping, share):
    names, runs = hopping
    run = runs[share]
    assert np.all(run["status"] == 0)
    assert run["sole"].min() < -0.01  # m: it penetrates the floor by more than a plan may
    assert np.abs(run["x"]).max() < 0.1
    assert np.abs(run["lean"]).max() < 0.5  # rad
    landed = names["LANDED"] * round(names["PERIOD"] / (run["t"][1] - run["t"][0]))
    assert np.all(run["contacts"][-landed // 2 :] > 0)
