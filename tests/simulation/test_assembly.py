"""Assembly: the nearest consistent pose, in any metric, or an error that names the open rows."""

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import minimize
from simulation_mechanisms import particle, slider_crank
from support.corpora import ROOT

import mbcasadi as mb
from mbcasadi.errors import AssemblyError, ShapeError, SimulationError

CLOSED = 1.1e-12  # it stops below 1e-12; a tenth is for the rounding of a second evaluation


def ellipse() -> mb.System:
    return particle(2, phi=lambda q, *_: q[0] ** 2 / 4 + q[1] ** 2 - 1)


def test_the_nearest_point_of_an_ellipse_is_found_from_afar():
    system = ellipse()
    rng = np.random.default_rng(2)
    for q0 in rng.uniform(-3, 3, (20, 2)):
        q = mb.assemble(system, q0)
        assert abs(float(system.constraint(q))) < CLOSED
        turns = np.linspace(0, 2 * np.pi, 20001)
        distances = np.hypot(2 * np.cos(turns) - q0[0], np.sin(turns) - q0[1])
        assert np.linalg.norm(q - q0) < distances.min() + 1e-6


def test_a_metric_decides_which_pose_is_nearest():
    system, q0, W = ellipse(), np.array([1.5, 1.0]), np.array([[100.0, 6.0], [6.0, 1.0]])
    q = mb.assemble(system, q0, metric=W)
    plain = mb.assemble(system, q0)
    assert np.linalg.norm(q - plain) > 0.05

    def cost(x):
        return (x - q0) @ W @ (x - q0)

    row = {"type": "eq", "fun": lambda x: x[0] ** 2 / 4 + x[1] ** 2 - 1}
    best = minimize(cost, plain, constraints=[row], tol=1e-14)
    assert cost(q) < best.fun + 1e-8
    normal = np.array([q[0] / 2, 2 * q[1]])
    step = W @ (q - q0)  # stationary: the weighted step is along the row
    assert abs(step[0] * normal[1] - step[1] * normal[0]) < 1e-6


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "spatial_loop", "slider_crank"])
def test_loops_close_from_disturbed_poses_and_stay_where_they_are_closed(name):
    system = mb.read_mjcf(ROOT / "mujoco_models" / f"{name}.xml")
    rng = np.random.default_rng(3)
    for _ in range(5):
        q0 = system.integrate(system.tree.q0, 0.2 * rng.standard_normal(system.nv)).full().ravel()
        gap = np.abs(system.constraint(q0).full()).max()
        q = mb.assemble(system, q0)
        assert gap > 1e-3
        assert np.abs(system.constraint(q).full()).max() < CLOSED
        size = system.scales.coordinates  # distances are in rad and lengths of the model
        d = system.difference(q0, q).full().ravel() / size
        A = system.constraint_jacobian(q).full() * size
        null = np.eye(system.nv) - np.linalg.pinv(A, 1e-9) @ A
        assert np.abs(null @ d).max() < 1e-5  # stationary: no way along the manifold is shorter
        np.testing.assert_allclose(mb.assemble(system, q), q, atol=1e-12)


def test_quaternions_stay_unit_and_a_pose_where_the_jacobian_vanishes_is_left():
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 6)
    free = mb.read_mjcf(
        '<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    )
    level = free.with_rows(q, v, phi=ca.vertcat(q[2], q[4] * q[6] - q[3] * q[5] - 0.3))
    assembled = mb.assemble(level, [0, 0, 1, 1, 0, 0, 0])
    assert abs(np.linalg.norm(assembled[3:]) - 1) < 1e-14
    assert np.abs(level.constraint(assembled).full()).max() < CLOSED
    upright = mb.assemble(slider_crank(), [np.pi / 2, np.pi / 2])  # gap 2, Jacobian zero
    assert abs(float(slider_crank().constraint(upright))) < CLOSED


def test_a_pose_where_the_search_is_stuck_closes_near_it():
    pan_tilt = mb.read_mjcf(
        '<mujoco><worldbody><body><joint axis="0 0 1"/><joint axis="0 1 0"/><geom size=".1"/>'
        "</body></worldbody></mujoco>"
    )
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    two_circles = pan_tilt.with_rows(q, v, phi=(ca.sumsqr(q) - 0.05**2) * (ca.sumsqr(q) - 0.5**2))
    assert np.linalg.norm(mb.assemble(two_circles, [0.0, 0.0])) == pytest.approx(0.05)


def test_what_cannot_be_closed_is_named():
    too_far = particle(2, phi=lambda q, *_: ca.vertcat(ca.sumsqr(q) - 1, q[0] - 2))
    with pytest.raises(AssemblyError, match=r"cannot be assembled.*residual.*row \d \(phi\d\)"):
        mb.assemble(too_far, [1.0, 0.0])
    with pytest.raises(SimulationError, match="cannot be assembled"):
        mb.simulate(too_far, [1.0, 0.0], [0, 0], 1.0)
    with pytest.raises(ShapeError, match="metric is not positive definite"):
        mb.assemble(ellipse(), [1.0, 0.0], metric=-np.eye(2))
    with pytest.raises(ShapeError, match=r"metric has shape \(3, 3\)"):
        mb.assemble(ellipse(), [1.0, 0.0], metric=np.eye(3))
    with pytest.raises(ShapeError, match="NaN"):
        mb.assemble(ellipse(), [np.nan, 0.0])


def test_rows_that_are_off_or_for_velocities_take_no_part():
    rows = particle(
        2, phi=lambda q, *_: ca.vertcat(q[0] - 1, q[1] - 2), A=lambda *_: np.array([[1.0, 1.0]])
    )
    switched = rows.with_mask([1, 0, 1])
    np.testing.assert_allclose(mb.assemble(switched, [0.0, 0.5]), [1.0, 0.5], atol=1e-12)
    np.testing.assert_allclose(
        mb.assemble(switched, [0.0, 0.5], mask=[0, 1, 1]), [0.0, 2.0], atol=1e-12
    )
