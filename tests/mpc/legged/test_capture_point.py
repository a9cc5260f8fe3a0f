"""Capture point and support, against MuJoCo, SciPy's hulls and the pendulum in closed form."""

import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import mbcasadi as mb
from mbcasadi.errors import ProblemError
from mbcasadi.mpc import capture_point, support_margin

LEGS = 3
WALKER = """
<mujoco><worldbody><body name="trunk" pos="0 0 .5"><freejoint/><geom size=".1" mass="4"/>
  <body pos=".2 0 -.2"><joint axis="0 1 0"/><geom size=".05" pos="0 .1 0" mass="1"/></body>
  <body pos="-.2 0 -.2"><joint axis="1 0 0"/><geom size=".05" pos="0 .1 -.1" mass="2"/></body>
</body></worldbody></mujoco>
"""


def state(rng, model):
    """Return a random state, and MuJoCo's centre of mass and its velocity."""
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0 + 0.3 * rng.standard_normal(model.nq)
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    data.qvel[:] = rng.standard_normal(model.nv)
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    return data.qpos, data.qvel, data.subtree_com[0], data.subtree_linvel[0]


def test_the_capture_point_is_where_a_pendulum_comes_to_rest():
    """With its centre of pressure there, `c(t) = ξ + (c - ξ) exp(-ω t)`: no speed is left."""
    model = mujoco.MjModel.from_xml_string(WALKER)
    point, rng = capture_point(mb.read_mjcf(WALKER)), np.random.default_rng(0)
    for _ in range(5):
        q, v, c, speed = state(rng, model)
        height = -0.3
        xi, omega = (np.array(each).ravel() for each in point(q, v, height))
        assert omega[0] ** 2 * (c[2] - height) == pytest.approx(9.81, rel=1e-12)
        at_rest = c[:2] - xi + speed[:2] / omega
        np.testing.assert_allclose(at_rest, 0, atol=1e-12)  # of the part that grows as exp(ω t)


def signed_distance(places, point):
    """Return the distance of a point to SciPy's hull (n >= 3), by its half planes."""
    planes = ConvexHull(places).equations
    return -np.max(planes[:, :2] @ point + planes[:, 2])


def test_the_margin_is_that_of_the_convex_hull_of_the_feet_that_stand():
    margin, rng, inside = support_margin(5), np.random.default_rng(1), 0
    for _ in range(200):
        places, point = rng.standard_normal((5, 2)), 0.7 * rng.standard_normal(2)
        on = rng.random(5) < 0.8
        if on.sum() < 3:
            on[:3] = True
        got = float(margin(places.T, on, point))
        assert got == pytest.approx(signed_distance(places[on], point), abs=1e-12)
        inside += got > 0
    assert 20 < inside < 180


def test_few_feet_have_no_inside():
    margin = support_margin(3)
    places, point = np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 5.0]]), np.array([1.5, 0.4])
    assert float(margin(places, [1, 1, 0], point)) == pytest.approx(-0.4)
    assert float(margin(places, [0, 0, 1], point)) == pytest.approx(-np.hypot(0.5, 4.6))
    assert float(margin(places, [0, 0, 0], point)) < -100
    assert float(margin(places[:, [0, 0, 1]], [1, 1, 1], point)) == pytest.approx(-0.4)  # one twice


def test_what_does_not_fall_along_z_is_refused():
    leaning = WALKER.replace("<mujoco>", '<mujoco><option gravity="1 0 -9"/>')
    with pytest.raises(ProblemError, match="along -z"):
        capture_point(mb.read_mjcf(leaning))
    with pytest.raises(ProblemError, match="feet"):
        support_margin(0)
