"""The hopper of dm_control hops in MuJoCo, whose contacts and gravity show it."""

import mujoco
import numpy as np
import pytest
from support.corpora import packaged_model
from support.examples import example, results

HOPS, GRAVITY = 3, 9.81
LEAST_FLIGHT = 0.2  # s


@pytest.fixture(scope="module")
def hopping(tmp_path_factory):
    packaged_model("dm_control/hopper")  # skips where the package is not installed
    names = example(35)
    assert "You will see" in names["__doc__"]
    main = names["main"]
    short = names | {"main": lambda figure: main(figure, hops=HOPS)}
    return names, results(short, tmp_path_factory.mktemp("hopper"))


def flights(run):
    """Return first and last tick of each time in the air."""
    steps = np.diff(np.pad(run["in_air"], 1).astype(int))
    return np.flatnonzero(steps).reshape(-1, 2) - [0, 1]


def mass_heights(run):
    """Return the height of the centre of mass at each tick, by MuJoCo, m."""
    model = mujoco.MjModel.from_xml_path(str(packaged_model("dm_control/hopper")))
    data, heights = mujoco.MjData(model), []
    for q in run["q"]:
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        heights.append(data.subtree_com[1, 2])
    return np.array(heights)


@pytest.mark.parametrize("share", ["100%", "110%"])
@pytest.mark.long
def test_every_scheduled_hop_is_a_flight_without_a_contact(hopping, share):
    names, runs = hopping
    run = runs[share]
    found, t, height = flights(run), run["t"], mass_heights(run)
    assert len(found) == HOPS
    for i, (first, last) in enumerate(found):
        assert t[last] - t[first] >= LEAST_FLIGHT - 2 * names["PERIOD"]  # between ticks in the air
        assert np.ptp(height[first : last + 1]) > 0.025  # m
        assert run["sole"][first : last + 1].max() > 50.0  # mm
        begins = names["PERIOD"] * (names["STANDS"] + i * (names["FLIES"] + names["LANDED"]))
        assert abs(t[first] - begins) < 1.5 * names["PERIOD"]  # one, seen at the next tick


@pytest.mark.parametrize("share", ["100%", "110%"])
@pytest.mark.long
def test_in_flight_gravity_alone_moves_the_centre_of_mass(hopping, share):
    _, runs = hopping
    run = runs[share]
    height = mass_heights(run)
    for first, last in flights(run):
        span = slice(first, last + 1)
        quadratic = np.polyfit(run["t"][span], height[span], 2)
        assert quadratic[0] == pytest.approx(-GRAVITY / 2, rel=1e-2)


@pytest.mark.parametrize("share", ["100%", "110%"])
@pytest.mark.long
def test_every_tick_is_solved_and_the_hopper_stays_where_it_is(hopping, share):
    names, runs = hopping
    run = runs[share]
    assert np.all(run["run"].recording.status == 0)
    assert run["sole"].min() < -10.0  # mm: it penetrates the floor by more than a plan may
    assert np.abs(run["q"][:, 0]).max() < 0.1
    assert np.abs(run["q"][:, 2]).max() < 0.5  # rad
    assert not np.any(run["in_air"][-names["LANDED"] // 2 :])
