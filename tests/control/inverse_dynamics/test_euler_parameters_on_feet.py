"""A body in Euler parameters stands on feet that are expressions, as MuJoCo's free body does."""

from dataclasses import replace

import casadi as ca
import mujoco
import numpy as np
import pytest
from full_problem import solve
from mujoco_problem import mujoco_full_problem

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.description.status import Status

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
        np.testing.assert_allclose(got.p, answer.p, atol=JUDGED * size)
        np.testing.assert_allclose(got.a[:3], answer.a[:3], atol=JUDGED * size)
        forces = got.contact_forces[np.array(on) > 0]
        np.testing.assert_allclose(forces, answer.force, atol=JUDGED * size)
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
