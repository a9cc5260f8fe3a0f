"""The cost of the regulator at the end of a horizon: what comes behind, so no horizon is longer."""

import casadi as ca
import numpy as np
import pytest
import scipy
from support.linear_mpc_cases import row_values
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError
from mbcasadi.system import evaluate

PERIOD = 0.02
NEAR = 1e-4  # rad and m, within which problems are linear
SAME = 2e-3  # of the change of the controls, for NEAR and the accuracy of QPs of small numbers
SHORT, LONGER, BEHIND = 2, 8, 600
STEP_OF_DIFFERENCES, LIFTED = 1e-5, 1e-6  # rad and m; of the largest entry, by differences
STEP = mpc.SemiImplicitStep()


def four_bar():
    """Return a loop with redundant rows, its equilibrium, and its rest."""
    system = mb.read_mjcf(models.path("four_bar"))
    rest = mb.equilibrium(system)
    return system, rest.q, rest.u


def walker():
    """Return a robot on four feet whose rows are switched."""
    system = mb.read_mjcf(small_walker())
    pose = standing_pose(system)
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    u = mb.equilibrium(system, pose, contacts=feet).u
    return mb.with_contacts(system, feet, pose).with_mask(), pose, u


def problem(made, N, Q_end=None):
    system, q, u = made
    Q = np.linspace(1.0, 5.0, 2 * system.nv)
    cost = mpc.Cost(Q=Q, R=np.full(system.nu, 1e-2), Q_end=Q_end)
    ocp = mpc.optimal_control_problem(system, N, PERIOD, [cost], step=STEP)
    return ocp, ocp.parameters(setpoint_q=q, setpoint_u=u)


def deviations(system, q):
    """Return a basis (2 nv, k) of the changes of q and v that the rows allow, by SciPy."""
    q_, v_ = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    psi = ca.SX(evaluate(system.loop_rate, {"q": q_, "v": v_}))
    rows = ca.Function("rows", [q_], [ca.jacobian(psi, v_)])(q).full()
    return np.kron(np.eye(2), scipy.linalg.null_space(rows, rcond=1e-9))


def first_control(made, N, weight, d):
    """Return how far u_0 is from rest where the state is, by a real-time iteration."""
    (system, q, u), (ocp, p) = made, problem(made, N, weight)
    X = np.tile(np.concatenate([q, np.zeros(system.nv)]), (N + 1, 1))
    guess = mpc.initial_guess(ocp, X, np.tile(u, (N, 1)))
    law = mpc.real_time_iteration(ocp, guess, solver="stagewise", shift=False, tolerance=1e-4)
    z, change = law.z_from(guess), np.split(NEAR * d, 2)
    state = np.array(system.integrate(q, change[0])).ravel(), change[1]
    output = row_values(law.function(*state, p.ravel(), z))
    assert output[2] == 0
    return output[0] - u


@pytest.mark.parametrize("make", [four_bar, walker])
@pytest.mark.every(2)
def test_a_longer_horizon_changes_nothing(make):
    made = make()
    system, q, u = made
    ocp, p = problem(made, SHORT)
    weight = mpc.regulator_weight(ocp, np.concatenate([q, np.zeros(system.nv)]), u, p[0])
    np.testing.assert_allclose(weight, weight.T, atol=1e-9 * np.abs(weight).max())
    assert np.linalg.eigvalsh(weight).min() > -1e-9 * np.abs(weight).max()
    basis = deviations(system, q)
    d = basis @ np.random.default_rng(0).standard_normal(basis.shape[1])
    short, longer = (first_control(made, N, weight, d) for N in (SHORT, LONGER))
    np.testing.assert_allclose(short, longer, atol=SAME * np.abs(longer).max())
    without = first_control(made, SHORT, None, d)
    assert np.abs(without - longer).max() > 0.1 * np.abs(longer).max()


def test_it_is_what_the_motion_behind_costs():
    made = four_bar()
    system, q, u = made
    ocp, p = problem(made, 1)
    rest = np.concatenate([q, np.zeros(system.nv)])
    weight = mpc.regulator_weight(ocp, rest, u, p[0])
    ocp = problem(made, 1, weight)[0]
    d = NEAR * deviations(system, q) @ [1.0, -2.0]
    x, cost = rest + d, 0.0
    law = mpc.real_time_iteration(
        ocp, mpc.initial_guess(ocp, [rest, rest], [u]), solver="stagewise", shift=False
    )
    for _ in range(BEHIND):
        q, v = x[: system.nq], x[system.nq :]
        control = row_values(law.function(q, v, p.ravel(), law.controller.z0))[0]
        cost += np.sum(np.array(ocp.residual(x, control, p[0])) ** 2) / 2
        x = np.array(ocp.dynamics(x, control, p[0])).ravel()
    assert np.abs(x - rest).max() < 1e-3 * NEAR
    assert d @ weight @ d / 2 == pytest.approx(cost, rel=SAME)


def differences(about, function, around, size):
    """Return derivatives of `function`, of changes (size,) of x and u, by central differences."""
    columns = []
    for d in STEP_OF_DIFFERENCES * np.eye(size):
        sides = [function(*around(side * d)) for side in (1, -1)]
        columns.append((about(*sides) if about else sides[0] - sides[1]) / STEP_OF_DIFFERENCES / 2)
    return np.array(columns).T


@pytest.mark.long
def test_the_cost_of_a_gait_is_that_of_the_lifted_system():
    made = walker()
    system, q, u = made
    ocp, p = problem(made, 1)
    x, nq, nx, nu = np.concatenate([q, np.zeros(system.nv)]), system.nq, 2 * system.nv, system.nu
    masks = [np.repeat(on, 3) for on in ([1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0], [0, 1, 1, 0])]
    P = np.tile(p[0], (len(masks), 1))
    P[:, slot_slices(ocp.slots)["mask"]] = masks
    weights = mpc.periodic_weights(ocp, np.tile(x, (4, 1)), np.tile(u, (4, 1)), P)

    def near(d):
        pose = np.array(system.integrate(q, d[: system.nv])).ravel()
        return np.concatenate([pose, d[system.nv : nx]]), u + d[nx:]

    def apart(right, left):
        change = np.array(system.difference(left[:nq], right[:nq])).ravel()
        return np.concatenate([change, right[nq:] - left[nq:]])

    Phi, Gam, L = np.eye(nx), np.zeros((nx, 0)), np.zeros((0, nx))  # of the samples before
    rows = np.zeros((0, 0))
    for sample in P:
        at = [
            lambda *a, p=sample, f=f: np.array(f(*a, p)).ravel()
            for f in (ocp.dynamics, ocp.residual)
        ]
        F = differences(apart, at[0], near, nx + nu)
        J = differences(None, at[1], near, nx + nu)
        L = np.vstack([L, J[:, :nx] @ Phi])
        of_u = np.hstack([J[:, :nx] @ Gam, J[:, nx:]])
        rows = np.vstack([np.hstack([rows, np.zeros((len(rows), nu))]), of_u])
        Phi, Gam = F[:, :nx] @ Phi, np.hstack([F[:, :nx] @ Gam, F[:, nx:]])
    first = scipy.linalg.solve_discrete_are(Phi, Gam, L.T @ L, rows.T @ rows, s=L.T @ rows)
    np.testing.assert_allclose(weights[0], first, atol=LIFTED * np.abs(first).max())
    assert np.abs(weights[1] - weights[0]).max() > 0.01 * np.abs(first).max()


def test_what_has_no_regulator_is_refused():
    made = four_bar()
    system, q, u = made
    ocp, p = problem(made, 2)
    rest = np.concatenate([q, np.zeros(system.nv)])
    with pytest.raises(ProblemError, match=r"no rest: an interval changes the state by"):
        mpc.regulator_weight(ocp, rest, u + 1.0, p[0])
    changes = mpc.optimal_control_problem(system, 2, PERIOD, [mpc.Cost(R=1.0, S=1.0)], step=STEP)
    with pytest.raises(ProblemError, match="states and controls alone"):
        mpc.regulator_weight(changes, np.zeros(changes.nx), u)
    body = '<body><joint name="{0}" type="slide" axis="{1}"/><geom size=".1" mass="1"/></body>'
    model = "<mujoco><worldbody>{0}{1}</worldbody><actuator><motor joint='a'/></actuator></mujoco>"
    apart = mb.read_mjcf(model.format(body.format("a", "1 0 0"), body.format("b", "0 1 0")))
    ocp = problem((apart, np.zeros(2), np.zeros(1)), 2)[0]
    with pytest.raises(ProblemError, match="Riccati"):
        mpc.regulator_weight(ocp, np.zeros(4), np.zeros(1))
    with pytest.raises(ProblemError, match="Riccati"):
        mpc.periodic_weights(ocp, np.zeros((1, 4)), np.zeros((1, 1)), ocp.parameters()[:1])
