"""Parts of an iteration written out or as loops, how large a function gets; stiff servos."""

import casadi as ca
import numpy as np
import pytest
from support.problems import problem

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.codegen.count import largest_body
from mbcasadi.mpc.lq import interval

LARGEST_FUNCTION = 100_000  # operations


def two_link_arm():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kinetic = ca.sumsqr(v) + v[0] * v[1] * ca.cos(q[0] - q[1])
    potential = 10 * ca.sin(q[0]) + 5 * ca.sin(q[1])
    return mb.from_lagrangian(q, v, kinetic=kinetic, potential=potential, B=np.eye(2))


@pytest.mark.parametrize("limit", [0, 100])
def test_loops_and_written_out_parts_are_the_same_maps(monkeypatch, limit):
    system = two_link_arm()
    s = mpc.stage_symbols(system)
    rows = [mpc.Bounded(ca.sin(s.q[0]) + s.u[1], -1, 1)]
    given = {"path": rows, "u_bounds": [[-3, 3]] * 2, "v_bounds": [[-2, 2]] * 2, "symbols": s}
    ocp = problem(system, 3, 0.05, Q=np.ones(4), R=[0.1, 0.2], Q_end=np.ones(4), **given)
    written = mpc.real_time_iteration(ocp).prepare
    monkeypatch.setattr(interval, "UNROLLED", limit)
    loops = mpc.real_time_iteration(ocp).prepare
    assert largest_body(loops) < largest_body(written)
    rng = np.random.default_rng(4)
    given = [rng.standard_normal(written.size_in(i)) for i in range(written.n_in())]
    for actual, expected in zip(loops.call(given), written.call(given), strict=True):
        size = max(1, np.abs(expected.full()).max())
        np.testing.assert_allclose(actual.full(), expected.full(), atol=1e-12 * size)


@pytest.mark.long
@pytest.mark.parametrize("name", ["planar_biped", "quadruped"])
@pytest.mark.every(2)
def test_no_function_of_a_legged_robot_is_beyond_the_limit(name):
    system = mb.read_mjcf(models.path(name))
    weights, start = np.ones(2 * system.nv), np.r_[system.tree.q0, np.zeros(system.nv)]
    ocp = mpc.optimal_control_problem(system, 20, 0.02, [mpc.Cost(Q=weights, R=np.ones(system.nu))])
    guess = mpc.initial_guess(ocp, np.tile(start, (21, 1)), np.zeros((20, system.nu)))
    rti = mpc.real_time_iteration(ocp, guess)
    made = (rti.prepare, rti.controller.stages.build, rti.controller.stages.finish)
    assert max(largest_body(function) for function in made) < LARGEST_FUNCTION


SERVO = """<mujoco><worldbody><body><joint name="turn" axis="0 1 0"/>
<inertial pos="0 0 0.1" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/></body></worldbody>
<actuator>{motor}</actuator></mujoco>"""
KV = '<position name="hold" joint="turn" kp="2000" kv="200"/>'  # poles: 10 and 2e5 1/s
MOTOR = '<motor name="hold" joint="turn"/>'
N = 10


def iteration(motor, **options):
    """Return the iteration about rest."""
    system = mb.read_mjcf(SERVO.format(motor=motor))
    ocp = problem(system, N, 0.02, Q=[10, 0.1], R=0.1, Q_end=[50, 0.5], **options)
    return mpc.real_time_iteration(
        ocp, mpc.initial_guess(ocp, np.zeros((N + 1, ocp.nx)), np.zeros((N, 1)))
    )


@pytest.mark.parametrize("options", [{}, {"S": 0.1}, {"step": mpc.StepOptions(substeps=4)}])
def test_a_step_too_long_for_a_servo_is_refused_as_such(options):
    with pytest.raises(
        err.ProblemError, match=r"grows .*-fold in one interval of 0.02 s: .*substeps"
    ):
        iteration(KV, **options)


def test_the_same_link_with_a_motor_is_served():
    assert np.all(np.isfinite(iteration(MOTOR).controller.z0))
