"""Semi-implicit steps: rows close in one step, derivatives along tangents, plans of IPOPT."""

import casadi as ca
import numpy as np
import pytest
from support.step_slopes import assert_slopes

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.codegen import export_c
from mbcasadi.errors import ProblemError

N, T, MU = 6, 0.02, 0.6
LEG = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="trunk" pos="0 0 .6"><freejoint/>
      <geom type="box" size=".15 .1 .05" mass="4"/>
      <body name="ball" pos="0 0 .1"><joint type="ball" damping=".1"/>
        <geom type="sphere" size=".04" pos=".02 0 .08" mass=".5"/></body>
      <body name="thigh" pos="0 .05 -.05"><joint name="hip" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5"/>
        <body name="shank" pos="0 0 -.3"><joint name="knee" axis="0 1 0" range="-2 -.1"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".3"/>
          <site name="foot" pos="0 0 -.3"/></body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hip" ctrlrange="-60 60" ctrllimited="true"/>
    <motor joint="knee" ctrlrange="-60 60" ctrllimited="true"/>
  </actuator>
</mujoco>
"""
FOOT = mb.Contact("foot", friction=MU, sides=4)
BENT = [0, 0, 0.6, 1, 0, 0, 0, 1, 0, 0, 0, 0.5, -1.0]  # free, ball, hip, knee
PULL = np.r_[4.0, -3.0, -5.0, 0.5, -0.4, 0.3, 0.01, -0.02, 0.03, 1.0, -2.0]  # N, N m
AT_FOOT = {"foot": np.arange(N + 1) != 3}  # in the air for a sample


@pytest.fixture(scope="module")
def problem():
    system = mb.with_contacts(mb.read_mjcf(LEG), [FOOT], BENT).with_mask()
    nv = system.nv
    weights = [*[20.0] * 6, *[0.5] * 3, 5.0, 5.0, *[1.0] * 6, *[0.1] * 5]
    parts = [
        mpc.Cost(Q=weights, R=[1e-3] * 2, Q_end=weights),
        mpc.ContactCones([FOOT]),
        mpc.Disturbance(),
        mpc.StageBounds(v=[[-9.0, 9.0]] * nv),
        mpc.ContactSchedule(closing=0.5),
    ]
    return mpc.optimal_control_problem(system, N, T, parts, step=mpc.SemiImplicitStep(decay=0.4))


def states(problem, count):
    system, rng = problem.system, np.random.default_rng(3)
    for _ in range(count):
        q = system.integrate(BENT, 0.3 * rng.standard_normal(system.nv))
        q, v = np.array(q).ravel(), 2 * rng.standard_normal(system.nv)
        yield np.r_[q, v], 20 * rng.standard_normal(system.nu), rng


def masked(problem, on):
    given = {"mask": mb.row_mask(problem.system, {"foot": on}), "disturbance": PULL}
    return problem.parameters(given, setpoint_q=BENT)


def test_a_step_keeps_the_equations_and_closes_rows_at_once(problem):
    """`A v⁺ = -h c - γ phi / h` and `M a + h = f + d + Aᵀ lam`, whatever the rows' velocity was."""
    system, nq = problem.system, problem.system.nq
    p = masked(problem, on=1)[0]
    for x, u, _ in states(problem, 10):
        q, v = x[:nq], x[nq:]
        x_next = np.array(problem.dynamics(x, u, p)).ravel()
        a, lam, *_ = (np.array(part) for part in problem.motion.derivatives(x, u, p))
        A, c = (
            np.array(part) for part in (system.constraint_jacobian(q), system.constraint_bias(q, v))
        )
        phi = np.array(system.constraint(q)).ravel()
        np.testing.assert_allclose(x_next[nq:], v + T * a.ravel(), atol=1e-12)
        np.testing.assert_allclose(A @ x_next[nq:], -T * c.ravel() - 0.4 * phi / T, atol=1e-9)
        force = np.array(system.actuator_force(q, v, u)) - np.array(system.bias_force(q, v))
        force += np.array(system.passive_force(q, v)) + PULL[:, None]
        M = np.array(system.mass_matrix(q)) + T * np.diag(system.tree.damping)  # at the end
        np.testing.assert_allclose(M @ a, force + A.T @ lam, atol=1e-9 * np.abs(lam).max())


def massless():
    """Return two slides on one row, the driven one without mass: M is singular."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    row = {"phi": q[0] - 2 * q[1], "ctrl_range": [[-0.5, 0.5]], "name": "massless"}
    system = mb.from_lagrangian(q, v, kinetic=3 * v[0] ** 2 / 2, B=[[0], [1]], **row)
    return system, [0.0, 0.0]


def closed_loop():
    system = mb.read_mjcf(models.path("four_bar"))  # of its four rows one is redundant
    return system, np.ravel(system.tree.q0)


def servos():
    """Return the leg with position servos, whose forces depend on q and v."""
    servo = '<position joint="{}" kp="40" kv="3" ctrlrange="-2 2"/>'
    text = LEG.split("<actuator>")[0] + "<actuator>{}</actuator></mujoco>"
    system = mb.read_mjcf(text.format(servo.format("hip") + servo.format("knee")))
    return system, BENT


def with_parameters():
    system = mb.read_mjcf(LEG, parameters=["body:shank:mass"])
    return mb.with_contacts(system, [FOOT], BENT).with_mask(), BENT


@pytest.mark.parametrize("case", [massless, closed_loop, servos, with_parameters])
def test_singular_inertia_redundant_rows_servos_and_parameters_have_the_same_derivatives(case):
    system, q = case()
    costs = [mpc.Cost(Q=[1.0] * 2 * system.nv, R=[1.0] * system.nu), mpc.ActuatorForceCost(0.1)]
    ocp = mpc.optimal_control_problem(system, N, T, costs, step=mpc.SemiImplicitStep())
    rng = np.random.default_rng(1)
    x, u = np.r_[q, rng.standard_normal(system.nv)], 0.1 * rng.standard_normal(system.nu)
    assert_slopes(ocp, x, u, ocp.parameters()[0])


def test_its_derivatives_are_slopes_along_tangents_of_rotations_too(problem):
    """By differences of the step itself; a mask switches the rows."""
    for on in (1, 0):
        p = masked(problem, on)[0]
        for x, u, _ in states(problem, 3):
            assert_slopes(problem, x, u, p)


@pytest.mark.long
def test_a_real_time_iteration_comes_to_the_plan_of_ipopt_and_its_c_too(problem, tmp_path):
    """The foot is in the air for a sample; its force is zero there, else in its cone."""
    p = masked(problem, AT_FOOT["foot"])
    start = np.r_[BENT, np.zeros(problem.system.nv)]
    start[problem.system.nq] = 0.4  # m/s
    guess = mpc.initial_guess(problem, np.tile(start, (N + 1, 1)), np.zeros((N, 2)))
    best = mpc.solve_ocp(problem, start, p, guess)
    assert best.solved, best.in_words
    rti = mpc.real_time_iteration(problem, guess, solver="stagewise", shift=False)
    in_c = export_c(rti, tmp_path / "leg").load(flags=("-O0",))
    q, v, z = start[: problem.system.nq], start[problem.system.nq :], rti.controller.z0
    for _ in range(12):
        u, z, status, *_ = in_c(q, v, p.ravel(), z)
        assert int(status) == 0
    np.testing.assert_allclose(np.array(u).ravel(), best.u[0], atol=1e-4)
    np.testing.assert_allclose(rti.trajectory(np.array(z))[1], best.u, atol=1e-4)
    mine, other = in_c(q, v, p.ravel(), z), rti.function(q, v, p.ravel(), z)
    np.testing.assert_allclose(np.array(mine[0]), np.array(other[0]), atol=1e-5)
    forces = mb.contact_force_fun(problem.system, [FOOT])
    for k, (x, u_k) in enumerate(zip(best.x, best.u, strict=False)):
        lam = problem.motion.derivatives(x, u_k, p[k])[1]
        n, *across = np.array(forces(x[: problem.system.nq], lam)).ravel()
        assert np.hypot(*across) <= MU * n + 1e-5
        assert (n == 0) == (k == 3)


def test_a_disturbance_without_a_place_in_the_equations_is_refused(problem):
    system, parts = problem.system, [mpc.Cost(Q=np.ones(2 * problem.system.nv)), mpc.Disturbance()]
    with pytest.raises(ProblemError, match=r"a Disturbance is a force of step=SemiImplicitStep"):
        mpc.optimal_control_problem(system, N, T, parts)


def test_a_decay_that_is_no_share_is_refused():
    for decay in (-0.1, (0.0, 1.1)):
        with pytest.raises(ProblemError, match="decay"):
            mpc.SemiImplicitStep(decay=decay)
