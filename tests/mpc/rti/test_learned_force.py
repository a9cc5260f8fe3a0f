"""Real-time iterations that learn the force which their model lacks, and plan with it."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.codegen import export_c
from mbcasadi.control import DisturbanceObserver
from mbcasadi.mpc.ocp.stage import DISTURBANCE

PERIOD, BANDWIDTH = 0.02, 15.0  # s, 1/s
LEFT = np.exp(-BANDWIDTH * PERIOD)  # share of the error that a tick leaves
EXACT = 1e-5  # of the force: the inertia is that after the step, in which the body turned
SAME = 1e-6  # of two solutions of one QP
SERVO = """
<mujoco><worldbody><body><joint name="hinge" axis="0 1 0" damping="0.5"/>
<geom size=".05" pos="0 0 -.4" mass="2"/></body></worldbody>
<actuator><position name="servo" joint="hinge" kp="2000" kv="200" forcerange="-100 100"/></actuator>
</mujoco>"""
FORCES = {"quadrotor": [0.3, -0.2, -1.3, 0.01, 0.02, -0.005], SERVO: [4.0]}


LEARNS = (mpc.Disturbance(),)


def problem(model, parts=LEARNS):
    """Return a problem that holds a model's pose."""
    system = mb.read_mjcf(model if model.startswith("\n") else models.path(model))
    end = [30.0] * system.nv + [3.0] * system.nv
    cost = mpc.Cost(Q=[10.0] * system.nv + [1.0] * system.nv, R=[1e-3] * system.nu, Q_end=end)
    step = mpc.SemiImplicitStep()
    return mpc.optimal_control_problem(system, 6, PERIOD, [cost, *parts], step=step)


def learner(ocp, delay=0):
    observer = DisturbanceObserver(bandwidth=BANDWIDTH)
    return mpc.real_time_iteration(ocp, delay=delay, solver="stagewise", observer=observer)


def learned(rti, z):
    """Return the force and the expected velocity in the state of a controller."""
    remembered, nv = rti.memory.split(ca.DM(z)).learned.full().ravel(), rti.ocp.system.nv
    return remembered[:nv], remembered[nv : 2 * nv]


def run(rti, d, ticks):
    """Return states, learned forces and expected velocities beside a plant with the force d."""
    ocp, nq, nv = rti.ocp, rti.ocp.system.nq, rti.ocp.system.nv
    p, z = ocp.parameters({DISTURBANCE: d})[0], rti.controller.z0
    line = [*rti.memory.split(ca.DM(z)).pending.full().T]
    x, states, forces, expected = ocp.rest.copy(), [], [], []
    for _ in range(ticks):
        u, z, status, *_ = rti.function(x[:nq], x[nq : nq + nv], rti.reference(), z)
        assert int(status) == 0
        line.append(np.array(u).ravel())
        x = np.array(ocp.dynamics(x, line.pop(0), p)).ravel()
        states.append(x)
        of_tick = learned(rti, z)
        forces.append(of_tick[0])
        expected.append(of_tick[1])
    return np.array(states), np.array(forces), np.array(expected)


@pytest.mark.parametrize("model", FORCES)
@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.every(3)
def test_each_tick_learns_the_same_share_of_a_constant_force_late_or_not(model, delay):
    """Of a free body with rotors, and of a stiff servo whose inertia over a step is 300 times."""
    d = np.array(FORCES[model])
    _, forces, _ = run(learner(problem(model), delay), d, 12)
    for k, force in enumerate(forces):
        np.testing.assert_allclose(force, (1 - LEFT**k) * d, atol=EXACT * np.abs(d).max())


def test_a_mechanism_with_loops_expects_its_motion_after_a_while():
    rti = learner(problem("four_bar"), 1)
    states, _, expected = run(rti, [0.05, 0.1, -0.05], 25)
    missed = np.abs(states[:-1, 3:] - expected[:-1]).max(axis=1)
    assert missed[0] > 1e-2
    assert missed[-1] < 0.01 * missed[0]


def test_velocities_that_loops_do_not_leave_teach_nothing():
    """A gap of a soft loop that opens at every tick would drive the force away."""
    rti = learner(problem("four_bar"))
    system, ref, q = rti.ocp.system, rti.reference(), rti.ocp.rest[:3]
    A, M = np.array(system.constraint_jacobian(q)), np.array(system.mass_matrix(q))
    across = np.linalg.solve(M, A.T @ np.ones(3))
    along = np.ones(3) - np.linalg.pinv(A) @ A @ np.ones(3)
    forces = []
    for direction in (0 * along, across / np.linalg.norm(across), along / np.linalg.norm(along)):
        z = rti.controller.z0
        for _ in range(10):
            z = rti.function(q, 0.01 * direction, ref, z)[1]
        forces.append(learned(rti, z)[0])
    of_across, of_along = (np.abs(force - forces[0]).max() for force in forces[1:])
    assert of_across < 0.01 * of_along


def test_nothing_is_learned_where_the_model_is_right():
    _, forces, _ = run(learner(problem("quadrotor"), 1), np.zeros(6), 8)
    assert np.abs(forces).max() < EXACT


@pytest.mark.long
def test_a_plan_that_has_learned_a_force_ends_where_one_ends_that_is_told_it():
    ocp, d = problem("quadrotor"), np.array([0.0, 0.0, -1.3, 0.0, 0.0, 0.0])
    told, free = (mpc.real_time_iteration(ocp, solver="stagewise") for _ in range(2))
    p, ends = ocp.parameters({DISTURBANCE: d})[0], []
    for law, known in ((learner(ocp), 0 * d), (told, d), (free, 0 * d)):
        x, z, ref = ocp.rest.copy(), law.controller.z0, law.reference({DISTURBANCE: known})
        for _ in range(200):
            u, z, *_ = law.function(x[:7], x[7:], ref, z)
            x = np.array(ocp.dynamics(x, u, p)).ravel()
        ends.append(x)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)
    assert abs(ends[2][2] - ends[1][2]) > 1e-3


@pytest.mark.long
def test_a_blow_is_limited_and_a_bad_measurement_teaches_nothing(tmp_path):
    """In Python and in the generated C, which agree."""
    rti = learner(problem("quadrotor"), 1)
    in_c = export_c(rti, tmp_path / "c").load()
    q, still, ref = rti.ocp.rest[:7], np.zeros(6), rti.reference()
    blow = np.array([0.0, 0.0, 1e6, 0.0, 0.0, 0.0])
    mass = sum(body.mass for body in rti.ocp.system.tree.bodies)
    states = {}
    for law in (rti.function, in_c):
        z = law(q, still, ref, rti.controller.z0)[1]
        states[law] = learned(rti, law(q, 1e-9 * blow, ref, z)[1])
        z = law(q, blow, ref, z)[1]
        force = learned(rti, z)[0]
        bound = rti.memory.force.strength * np.sqrt(mass)
        assert 0.1 * (1 - LEFT) * bound < force[2] <= (1 - LEFT) * bound
        z_bad = law(q * np.nan, still, ref, z)[1]
        np.testing.assert_array_equal(learned(rti, z_bad)[0], force)
        again = law(q, still, ref, z_bad)[1]
        np.testing.assert_array_equal(learned(rti, again)[0], force)
    np.testing.assert_allclose(states[in_c], states[rti.function], rtol=SAME, atol=SAME)


def test_an_observer_needs_a_disturbance_and_a_disturbance_its_step():
    with pytest.raises(err.ProblemError, match="no disturbance that an observer can learn"):
        learner(problem("four_bar", ()))
    system = mb.read_mjcf(models.path("four_bar"))
    parts = [mpc.Cost(Q=[1.0] * 6, R=[1.0]), mpc.Disturbance()]
    with pytest.raises(err.ProblemError, match="a force of step=SemiImplicitStep"):
        mpc.optimal_control_problem(system, 3, PERIOD, parts)
