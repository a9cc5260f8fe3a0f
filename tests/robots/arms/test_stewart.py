"""The cheap rows of the table of robots, on models of our own."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.plant import Plant
from robots.arms import stewart
from robots.arms.row import Figure


def test_every_choice_of_six_legs_is_singular_on_the_way_and_seven_never():
    """By the determinants of the legs' lengths over the platform's twist."""
    assert stewart.singular_choices() == 7
    yaws = np.linspace(-stewart.TURN / 2, stewart.TURN / 2, 101)
    least = [
        np.linalg.svd(stewart.length_jacobian(yaw, np.arange(7)), compute_uv=False)[-1]
        for yaw in yaws
    ]
    assert min(least) > 0.3


@pytest.mark.long
def test_seven_legs_take_the_platform_through_singular_poses_of_six():
    """10 % heavier, one tick late, the exported C in MuJoCo."""
    recording = stewart.run(7, duration=3.0)
    assert not recording.events
    assert np.all(recording.status == 0)
    assert 1e3 * np.linalg.norm(recording.monitor["error"][:, :3], axis=1).max() < 1.0
    assert np.abs(recording.u).max() < stewart.FORCE / 2
    # The error is that of the platform in the plant, whose soft loops are open by some microns.
    model = mujoco.MjModel.from_xml_string(stewart.model_text(7))
    data, places = mujoco.MjData(model), np.zeros((recording.ticks, 3))
    for place, q in zip(places, recording.q, strict=True):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        place[:] = data.site("tool").xpos
    expected = recording.monitor["target"][:, :3] - places
    np.testing.assert_allclose(recording.monitor["error"][:, :3], expected, atol=1e-12)


def test_six_legs_at_rest_in_a_singular_pose_have_a_bounded_output_and_a_status():
    """Where no force of six legs holds the platform, the law says so or gives its best."""
    text = stewart.model_text(6)
    system = mb.read_mjcf(text)
    law = stewart.law_of(system)
    yaws = np.linspace(-stewart.TURN / 2, stewart.TURN / 2, 4001)
    values = [np.linalg.det(stewart.length_jacobian(yaw, np.arange(6))) for yaw in yaws]
    singular = yaws[int(np.argmin(np.abs(values)))]
    q = stewart.turned_configuration(text, singular)
    plant = Plant(text)
    plant.reset(q, consistent=False)
    assert plant.measure(np.zeros(6)).closure < 1e-9
    for push in (0.0, 1e-3, 1.0):
        v = push * np.random.default_rng(1).standard_normal(system.nv)
        solution = law.solve(q, v, law.reference_at(q))
        assert solution.status in (0, 1, 2)
        assert np.all(np.isfinite(solution.u))
        assert np.abs(solution.u).max() <= stewart.FORCE


@pytest.mark.parametrize(("value", "reached"), [(0.5, "yes"), (2.0, "NO"), (np.nan, "NO")])
def test_a_figure_says_whether_its_goal_is_reached(value, reached):
    assert str(Figure("robot", "now", "error", value, 1.0, "mm")).endswith(f"| {reached} |")
