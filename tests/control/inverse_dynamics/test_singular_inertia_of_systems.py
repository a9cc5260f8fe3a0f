"""Massless coordinates and Euler parameters: M is singular, and definite along the free motion.

The judge is the KKT system of the motion in NumPy, and MuJoCo's free body.
"""

from dataclasses import replace

import casadi as ca
import mujoco
import numpy as np
import pytest
from full_problem import solve
from mujoco_problem import mujoco_full_problem
from numpy.testing import assert_allclose

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.laws import computed_torque, within_limits
from mbcasadi.description.status import Status

ACCELERATION = 1e-9  # relative; condition of the KKT system up to 1e6


def slider_crank(length, limit=np.inf):
    """Return a slider-crank of angles a, b and position x; the rod has no inertia."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    a, b, x = ca.vertsplit(q)
    across = length * (ca.sin(a) + 2 * ca.sin(b))
    phi = ca.vertcat(length * (ca.cos(a) + 2 * ca.cos(b)) - x, across, 3 * across)
    kinetic = 0.7 * (length * v[0]) ** 2 + 0.4 * v[2] ** 2
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=6.0 * length * ca.sin(a), B=[[1], [0], [0]], phi=phi,
        ctrl_range=[[-limit, limit]],
    )  # fmt: skip


def spinning_body():
    """Return a rigid body in four Euler parameters with a torque about each axis."""
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    e0, e1, e2, e3 = ca.vertsplit(q)
    G = ca.vertcat(
        ca.horzcat(-e1, e0, e3, -e2), ca.horzcat(-e2, -e3, e0, e1), ca.horzcat(-e3, e2, -e1, e0)
    )
    omega = 2 * G @ v
    kinetic = omega.T @ ca.diag([0.1, 0.2, 0.25]) @ omega / 2
    return mb.from_lagrangian(q, v, kinetic=kinetic, B=2 * G.T, phi=ca.sumsqr(q) - 1)


def states(name, system, length):
    if name == "spinning_body":
        q = np.array([0.5, 0.5, -0.5, 0.5])
        return q, np.array([0.3, -0.3, 0.1, 0.1]) - q * (q @ [0.3, -0.3, 0.1, 0.1])
    a = 0.7
    b = -np.arcsin(np.sin(a) / 2)
    q = np.array([a, b, length * (np.cos(a) + 2 * np.cos(b))])
    v = np.linalg.svd(np.array(system.constraint_jacobian(q)))[2][-1]
    return q, v / v[0]


def motion(system, q, v, u):
    """Return the acceleration that the equations of motion give, by a pseudo-inverse."""
    M, A = np.array(system.mass_matrix(q)), np.array(system.constraint_jacobian(q))
    force = np.array(system.actuation(q)) @ u - np.array(system.bias_force(q, v)).ravel()
    scale = np.abs(A).max()
    K = np.block([[M / np.abs(M).max(), A.T / scale], [A / scale, np.zeros((len(A),) * 2)]])
    c = np.array(system.constraint_bias(q, v)).ravel()
    right = np.concatenate([force / np.abs(M).max(), -c / scale])
    return (np.linalg.pinv(K, rcond=1e-14) @ right)[: len(q)]


@pytest.mark.parametrize(
    ("name", "length"),
    [("slider_crank", 1.0), ("slider_crank", 1e-3), ("slider_crank", 1e3), ("spinning_body", 1.0)],
)
def test_the_acceleration_is_that_of_the_equations_of_motion(name, length):
    system = spinning_body() if name == "spinning_body" else slider_crank(length)
    assert system.semidefinite
    controller = InverseDynamicsQP(system, [PostureTask(kp=100.0)])
    q, v = states(name, system, length)
    ref = controller.reference_at(q)
    ref[0] += 0.1
    solution = controller.solve(q, v, ref)
    assert solution.solved, solution.explain()
    size = np.array([1.0, 1.0, length]) if name == "slider_crank" else 1.0
    expected = motion(system, q, v, solution.u) / size
    assert_allclose(solution.a / size, expected, atol=ACCELERATION * np.abs(expected).max())
    assert np.abs(expected).max() > 1.0  # and not because nothing moves


def test_where_the_mask_leaves_the_motion_undetermined_the_status_says_so():
    """Without its loop the massless rod has no equation of motion."""
    system = slider_crank(1.0)
    controller = InverseDynamicsQP(system, [PostureTask(kp=100.0)])
    q, v = states("slider_crank", system, 1.0)
    for mask, status in (([1, 1, 1], 0), ([1, 0, 1], 0), ([0, 0, 0], 4)):
        assert controller.solve(q, v, mask=mask).status == status


def test_a_law_within_limits_moves_a_massless_rod():
    system = slider_crank(1.0, limit=100.0)
    law = within_limits(computed_torque(system, PostureTask(kp=400.0)))
    q, v = states("slider_crank", system, 1.0)
    saturated = 0
    for shift in (0.0, 0.01, 0.5):
        ref = law.reference(posture_q=q + shift * np.eye(3)[0])
        u, _, status, *_ = law.function(q=q, v=v, ref=ref, z=law.controller.z0).values()
        assert int(status) in (Status.SOLVED, Status.SATURATED)
        assert abs(float(u)) <= 100.0
        saturated += int(status) == Status.SATURATED
    assert 0 < saturated < 3


MASS, INERTIA, LIMIT = 4.0, (0.2, 0.3, 0.4), 30.0
FEET = {"left": (0.3, 0.2, -0.1), "right": (0.3, -0.2, -0.1), "back": (-0.3, 0.0, -0.1)}
JUDGED = 1e-7  # relative: two solvers and two models
TASK = FrameTask("centre", kp=40.0)
CONTACTS = tuple(mb.Contact(name, friction=0.5, sides=6) for name in FEET)
BODY = f"""<mujoco><worldbody><body name="body"><freejoint/>
<inertial pos="0 0 0" mass="{MASS}" diaginertia="{" ".join(map(str, INERTIA))}"/>
<site name="centre"/>
{"".join(f'<site name="{name}" pos="{" ".join(map(str, p))}"/>' for name, p in FEET.items())}
</body></worldbody></mujoco>"""


def rate_matrix(e):
    """Return G of `ω = 2 G de/dt`, body axes."""
    w, x, y, z = (e[k] for k in range(4))
    return [(-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w)]


def body(*, unit_length):
    """Return the System: thrust along three axes of the world, and a torque about the body's z."""
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    G = ca.vertcat(*(ca.horzcat(*row) for row in rate_matrix(q[3:])))
    omega = 2 * G @ v[3:]
    kinetic = MASS / 2 * ca.sumsqr(v[:3]) + ca.dot(omega, ca.DM(INERTIA) * omega) / 2
    w, x, y, z = ca.vertsplit(q[3:] / ca.norm_2(q[3:]) if unit_length else q[3:])
    K = ca.vertcat(ca.horzcat(0, -z, y), ca.horzcat(z, 0, -x), ca.horzcat(-y, x, 0))
    R = ca.SX.eye(3) + 2 * w * K + 2 * K @ K
    B = ca.SX.zeros(7, 4)
    B[:3, :3], B[3:, 3] = ca.SX.eye(3), 2 * G[2, :].T
    system = mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=9.81 * MASS * q[2], B=B,
        phi=ca.sumsqr(q[3:]) - 1, ctrl_range=[[-LIMIT, LIMIT]] * 4,
    ).with_frame("centre", q, q[:3], R)  # fmt: skip
    for name, place in FEET.items():
        system = system.with_frame(name, q, q[:3] + R @ ca.DM(place), R)
    return system


def random_state(rng):
    """Return q and v, in Euler parameters and MuJoCo's."""
    e = np.array([1.0, 0, 0, 0]) + 0.3 * rng.standard_normal(4)
    q = np.concatenate([rng.standard_normal(3), e / np.linalg.norm(e)])
    v = 0.5 * rng.standard_normal(6)
    rate = np.array(rate_matrix(q[3:])).T @ v[3:] / 2
    return q, np.concatenate([v[:3], rate]), v


def test_its_forces_are_those_of_the_full_problem_of_a_free_body():
    model = mujoco.MjModel.from_xml_string(BODY)
    law = InverseDynamicsQP(body(unit_length=True), [TASK], CONTACTS)
    rng, B, pressed = np.random.default_rng(8), np.zeros((6, 4)), 0
    B[:3, :3], B[5, 3] = np.eye(3), 1.0
    for on in ((1, 1, 1), (1, 0, 1), (0, 1, 0), (1, 1, 1), (0, 0, 0), (1, 1, 1)):
        q, v, rates = random_state(rng)
        ref = law.reference_at(q)
        ref[law.reference_slices["centre.acceleration"]] = rng.standard_normal(3)
        part = {name.split(".")[1]: ref[place] for name, place in law.reference_slices.items()}
        full = mujoco_full_problem(
            model, q, rates, [(TASK, part)], CONTACTS, weights=law.force_weights, on=on
        )
        answer = solve(replace(full, B=B, limits=np.array([[-LIMIT, LIMIT]] * 4)))
        got = law.solve(q, v, ref, mask=(*on, 1))
        assert answer.feasible == got.solved, got.explain()
        if not answer.feasible:
            assert got.status == Status.INFEASIBLE
            continue
        size = max(1.0, np.abs(answer.p).max(), np.abs(answer.force).max(initial=0.0))
        assert_allclose(got.p, answer.p, atol=JUDGED * size)
        assert_allclose(got.a[:3], answer.a[:3], atol=JUDGED * size)
        forces = got.contact_forces[np.array(on) > 0]
        assert_allclose(forces, answer.force, atol=JUDGED * size)
        pressed += bool(np.abs(answer.force).max(initial=0.0) > 1.0)
    assert pressed >= 3


def test_a_rotation_of_euler_parameters_of_any_length_is_refused():
    """Off their unit length `R(e)` is no rotation: that points share a body cannot be seen."""
    with pytest.raises(err.ProblemError, match="'left' and 'right' are points of one rigid body"):
        InverseDynamicsQP(body(unit_length=False), [TASK], CONTACTS)


def test_bad_input_before_the_first_measurement_is_safe():
    """At q = 0, which stands for a pose not measured yet, the rotation is 0/0."""
    law = InverseDynamicsQP(body(unit_length=True), [TASK], CONTACTS)
    q = np.array([0, 0, 0.1, 1.0, 0, 0, 0])
    for bad in (0, 5):
        measured = q.copy()
        measured[bad] = np.nan
        got = law.solve(measured, np.zeros(7), law.reference_at(q))
        assert got.status == Status.BAD_INPUT
        assert np.all(np.abs(got.u) <= LIMIT)
        assert np.all(np.isfinite(got.z_next))
