"""Contacts that take their load by and by, and masks by measured touch-down."""

import casadi as ca
import numpy as np
import pytest
from mechanisms import feet, system_of

from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, LoadRamp, PostureTask, touch_down
from mbcasadi.errors import ProblemError

H, TICKS, LOAD = 2e-3, 20, 80.0
RAMP = LoadRamp(duration=TICKS * H, force=LOAD)


@pytest.fixture(scope="module")
def law():
    tasks = [FrameTask("trunk", kind="body", kp=100.0), PostureTask(weight=1e-3)]
    return InverseDynamicsQP(system_of("quadruped"), tasks, feet(), load_ramp=RAMP, period=H)


def ticks(law, masks, function=None):
    """Return statuses, shares in z and forces of a robot that is held still."""
    q = np.array(law.system.tree.keyframes["stand"])
    z, shares, forces = law.z0, [], []
    names = law.controller.inputs[-1].components
    places = [i for i, name in enumerate(names) if name.startswith("unloaded.")]
    for mask in masks:
        got = law.solve(q, np.zeros(18), mask=mask, z=z)
        assert got.status == 0
        shares.append(z[places])
        forces.append(got.contact_forces[:, 0])
        z = got.z_next
    return np.array(shares), np.array(forces)


def test_a_foot_takes_its_load_in_a_straight_line(law):
    masks = [(1, 1, 1, 1)] * 3 + [(0, 1, 1, 1)] * 2 + [(1, 1, 1, 1)] * (TICKS + 5)
    shares, forces = ticks(law, masks)
    assert np.all(shares[:4] == 0.0)  # all are loaded at first
    switched = forces[5:, 0]
    bound = LOAD * np.arange(TICKS) / TICKS
    assert np.all(switched[:TICKS] <= bound + 1e-6)
    early = slice(1, 6)  # where the foot would carry more
    np.testing.assert_allclose(switched[early], bound[early], rtol=1e-5)
    assert switched[-1] == pytest.approx(forces[0, 0], rel=1e-4)
    np.testing.assert_allclose(
        shares[5:, 0], np.maximum(1 - np.arange(TICKS + 5) / TICKS, 0), atol=1e-9
    )
    assert np.all(shares[:, 1:] == 0.0)


def test_the_generated_c_is_the_function(law, tmp_path):
    compiled = export_c(law, tmp_path / "law").load(flags=("-O0",))
    q, rng = np.array(law.system.tree.keyframes["stand"]), np.random.default_rng(0)
    z = law.z0
    for k in range(12):
        inputs = {"q": q, "v": np.zeros(18), "ref": law.reference_at(q), "z": z}
        inputs["mask"] = [k % 4 > 0, 1, 1, 1]
        in_c, expected = compiled(**inputs), law.function(**inputs)
        for name in ("u", "z_next", "status"):
            np.testing.assert_allclose(
                np.array(in_c[name]), np.array(expected[name]), rtol=1e-6, atol=1e-6
            )
        z = np.array(expected["z_next"]).ravel()
        if k == 7:
            z = rng.choice([0.0, np.nan, 1e300, -3.0], z.size)


def masks_of(function, schedule, force):
    z, masks = np.array([1.0, 0.0]), []
    for stands, newton in zip(schedule, force, strict=True):
        found = function(schedule=stands, normal_force=newton, z=z)
        masks.append(int(found["mask"]))
        z = found["z_next"]
    return masks


def test_a_contact_is_used_where_it_is_measured(tmp_path):
    function = touch_down(["foot"], on_force=10.0, off_force=5.0)
    compiled = export_c(function, tmp_path / "law").load(flags=("-O0",))
    cases = {
        "stands, with a weak moment and a loss": (
            [1] * 6,
            [50, 7, 4, 7, 12, 6],
            [1, 1, 0, 0, 1, 1],
        ),
        "late touch-down": ([1, 0, 0, 1, 1, 1], [50, 30, 0, 0, 0, 20], [1, 0, 0, 0, 0, 1]),
        "early touch-down": ([1, 0, 0, 0, 0, 1], [50, 30, 0, 0, 20, 40], [1, 0, 0, 0, 1, 1]),
        "no sensor": ([1, 1, 0], [np.nan, 50, np.nan], [0, 1, 0]),
    }
    for name, (schedule, force, expected) in cases.items():
        for either in (function, compiled):
            assert masks_of(either, schedule, force) == expected, name


def test_several_contacts_are_independent():
    one, three = touch_down(["a"], 10.0, 5.0), touch_down(["a", "b", "c"], 10.0, 5.0)
    rng = np.random.default_rng(3)
    schedule, force = rng.integers(0, 2, (3, 50)), 20 * rng.random((3, 50))
    z, together = np.r_[np.ones(3), np.zeros(3)], []
    for k in range(50):
        found = three(schedule=schedule[:, k], normal_force=force[:, k], z=z)
        together.append(np.array(found["mask"]).ravel())
        z = found["z_next"]
    for i in range(3):
        assert masks_of(one, schedule[i], force[i]) == [int(mask[i]) for mask in together]
    assert isinstance(three, ca.Function)


def test_impossible_ramps_and_thresholds_are_refused():
    with pytest.raises(ProblemError, match="duration"):
        LoadRamp(0.0, 10.0)
    with pytest.raises(ProblemError, match="off_force <= on_force"):
        touch_down(["foot"], on_force=5.0, off_force=10.0)
    with pytest.raises(ProblemError, match="0 contacts"):
        touch_down([], on_force=5.0, off_force=1.0)
