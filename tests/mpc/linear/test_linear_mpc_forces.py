"""Bounds on constraint forces: slopes against differences, and feet that stay in their cones."""

import re
from functools import cache

import casadi as ca
import numpy as np
import pytest
import scipy
from support.linear_mpc_cases import at_rest, held, mechanism_mpc, recorded, row_values
from support.peer_qp import condensed_solution

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.control.regulators.tangent import null_basis
from mbcasadi.mpc.linear.force_outputs import force_slopes

STEP = 1e-6  # of differences
FRICTION, LEAST = 0.4, 60.0  # -, N
PUSHED = 0.2  # m/s of the hip
FEET = ("left_foot", "right_foot")
PERIOD = 0.01
WEAK = np.tile([-60.0, 60.0], (4, 1))  # N m


@cache
def motion_of(system):
    """Return (q, v, u) → (a, lam) of the whole mechanism."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    u = ca.SX.sym("u", system.nu)
    f = system.actuation(q) @ u + system.actuator_bias(q, v)
    a, _, lam = mb.forward_dynamics(system, derivatives=False)(q, v, f)
    return ca.Function("motion", [q, v, u], [a, lam])


def reaction(system, q, v, u):
    return motion_of(system)(q, v, u)[1].full().ravel()


@pytest.mark.parametrize("name", ["planar_biped", "four_bar", "cart_pole"])
def test_slopes_of_forces_are_differences_along_the_manifold(name):
    """Redundant rows in all three: six of rank 4, three of rank 2, six of rank 3."""
    linear = at_rest(name)
    system = linear.system
    slopes, rng = force_slopes(linear), np.random.default_rng(0)
    np.testing.assert_allclose(
        slopes.lam, reaction(system, linear.q, linear.v, linear.u), atol=1e-8
    )
    for _ in range(5):
        x, du = rng.standard_normal(linear.nx), rng.standard_normal(linear.nu)
        dq, dv = linear.to_dq @ x, linear.to_dv @ x

        def along(step, dq=dq, dv=dv, du=du):
            q = np.array(system.integrate(linear.q, step * dq)).ravel()
            return reaction(system, q, linear.v + step * dv, linear.u + step * du)

        expected = (along(STEP) - along(-STEP)) / (2 * STEP)
        actual = slopes.of_state @ np.concatenate([dq, dv]) + slopes.of_u @ du
        scale = np.abs(expected).max()
        assert scale > 1e-2
        np.testing.assert_allclose(actual, expected, atol=2e-6 * scale)


def push(linear):
    """Return the velocity on the manifold whose hip moves at `PUSHED`, nearest to that alone."""
    free = linear.to_dv[:, linear.n_q :]
    along = free @ free[0]
    return along * PUSHED / along[0]


def run(linear, law, ticks=60, substeps=5):
    """Return the feet's forces at each tick (ticks, 2, 3) in our own dynamics, and statuses."""
    system, ref = linear.system, held(law, linear)
    dynamics, q, v = motion_of(system), np.array(linear.q), push(linear)
    z, forces, statuses = law.controller.z0, [], []
    for _ in range(ticks):
        u, z, status, *_ = law.function(q, v, ref, z)
        statuses.append(float(status))
        forces.append(reaction(system, q, v, u).reshape(2, 3))
        for _ in range(substeps):
            a = dynamics(q, v, u)[0].full().ravel()
            v = v + PERIOD / substeps * a
            q = np.array(system.integrate(q, PERIOD / substeps * v)).ravel()
    return np.array(forces), statuses, np.abs(q - linear.q).max()


@cache
def controller_of(linear, feet=False, bounded=False):
    outputs = cones(linear, LEAST) if feet else []
    options = {"u_bounds": WEAK} if bounded else {}
    return mechanism_mpc(linear, 15, 1e-4, Q=(10.0, 0.1), period=PERIOD, outputs=outputs, **options)


def cones(linear, least, friction=FRICTION):
    return [mpc.friction_output(linear, foot, foot, friction, min_force=least) for foot in FEET]


def slipping(forces):
    """Return the largest |f_t| / f_n, infinite where a foot is pulled."""
    normal, tangent = forces[..., 2], np.abs(forces[..., 0])
    return np.inf if normal.min() <= 0 else (tangent / normal).max()


def test_without_the_cones_a_push_tears_a_foot_off_and_with_them_no_foot_slips():
    linear = at_rest("planar_biped")
    free, statuses, _ = run(linear, controller_of(linear))
    assert statuses == [0.0] * len(statuses)
    assert free[..., 2].min() < 0  # a pin that pulls is no foot
    kept, statuses, left = run(linear, controller_of(linear, feet=True))
    assert statuses == [0.0] * len(statuses)
    assert slipping(kept) < FRICTION + 0.05  # forces are linear in the problem only
    assert kept[..., 2].min() > LEAST - 5
    assert left < 0.02


def test_the_plan_keeps_each_force_of_the_linear_model_inside_its_cone():
    linear = at_rest("planar_biped")
    law, slopes = controller_of(linear, feet=True), force_slopes(linear)
    given = (linear.q, push(linear), held(law, linear), law.controller.z0)
    x, u = (np.array(part) for part in law.controller.prediction(*given))
    nv = linear.system.nv
    deviation = np.vstack([x[:nv] - linear.q[:, None], x[nv:]])[:, :-1]
    lam = slopes.lam[:, None] + slopes.of_state @ deviation
    lam = lam + slopes.of_u @ (u - linear.u[:, None])
    normal, tangent = lam[[2, 5]], np.abs(lam[[0, 3]])
    assert np.all(normal > LEAST - 1e-4)
    assert np.all(tangent < FRICTION * normal + 1e-4)
    assert normal.min() < LEAST + 1e-4  # the bound is at work


def test_solutions_with_force_rows_are_those_of_an_independent_solver():
    """Hard rows; after large pushes no control keeps the feet down, and that is found."""
    linear = at_rest("planar_biped")
    law = controller_of(linear, feet=True, bounded=True)
    rng, count = np.random.default_rng(3), 1000
    solve = law.function.map(count)
    E = null_basis(np.array(linear.system.constraint_jacobian(linear.q)), 1e-7)
    to_x = scipy.linalg.block_diag(linear.to_xi @ E, linear.to_eta @ E)  # of rad and m
    states = [linear.state(0.6 * to_x @ rng.standard_normal(linear.nx)) for _ in range(count)]
    q, v = (np.array(part).T for part in zip(*states, strict=True))
    columns = [
        np.tile(part[:, None], (1, count)) for part in (held(law, linear), law.controller.z0)
    ]
    u, _, status, *_ = (np.array(out) for out in solve(q, v, *columns))
    seen = {"solved": 0, "infeasible": 0, "at a bound": 0}
    for k in range(count):
        x = linear.coordinates(q[:, k], v[:, k])
        y, bound = condensed_solution(
            law.condensed, np.concatenate([x, np.zeros(linear.nx + linear.nu)])
        )
        if y is None:
            assert status[0, k] == 2
            seen["infeasible"] += 1
            continue
        assert status[0, k] == 0
        seen["solved"] += 1
        seen["at a bound"] += bound
        expected = y[: linear.nu] + linear.u
        np.testing.assert_allclose(u[:, k], expected, atol=1e-7 * np.abs(expected).max())
    assert min(seen.values()) > 20, seen


def test_a_pin_that_may_not_be_pulled_too_hard():
    """A generic row of lam: the four-bar's pin."""
    linear = at_rest("four_bar")
    slopes, few = force_slopes(linear), (linear, 10, 1e-3)
    base, bound = slopes.lam[0], 0
    ends = base - 0.02, base + 0.02
    tight = mpc.force_output(linear, "pin", np.eye(3)[:1], *ends, linear_penalty=10.0)
    laws = mechanism_mpc(*few, outputs=[tight]), mechanism_mpc(*few)
    for x in 0.02 * np.random.default_rng(0).standard_normal((40, linear.nx)):
        given = (*linear.state(x), held(laws[0], linear))
        deviation, forces = np.concatenate([linear.to_dq @ x, linear.to_dv @ x]), []
        for law in laws:
            u, _, status, *_ = row_values(law.function(*given, law.controller.z0))
            assert status == 0
            lam = slopes.lam + slopes.of_state @ deviation + slopes.of_u @ (u - linear.u)
            forces.append(abs(lam[0] - base))
        if forces[1] > 0.03:
            bound += 1
            assert forces[0] < forces[1]
    assert bound > 5


def friction(linear, foot=FEET[0], value=0.5, **options):
    return mpc.friction_output(linear, "feet", foot, value, **options)


def rows(linear, pick, *ends):
    return mechanism_mpc(linear, 3, outputs=[mpc.force_output(linear, "feet", pick, *ends)])


WRONG = {
    "no such pin": (lambda x: friction(x, "foot"), err.UnknownNameError, "unknown constraint"),
    "friction": (lambda x: friction(x, value=-0.5), err.ProblemError, "expected a positive number"),
    "normal": (lambda x: friction(x, normal=(0, 0, 0)), err.ProblemError, "numbers, not zero"),
    "rows": (lambda x: rows(x, np.eye(5)), err.ShapeError, r"expected \(k, 6\)"),
    "unloaded": (lambda x: rows(x, np.eye(6)[1]), err.ProblemError, "no control changes"),
    "empty": (lambda x: rows(x, np.eye(6)[0], 2.0, 1.0), err.ProblemError, "empty"),
}


@pytest.mark.parametrize("case", WRONG)
def test_forces_that_make_no_sense_are_refused(case):
    make, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        make(at_rest("planar_biped"))


FLOOR, COUNTED_ON = 0.35, 0.28  # friction of the plant, and of the law
SOLE = (
    r'\g<0><geom type="sphere" size="0.02" \1 mass="0" contype="1" '
    f'friction="{FLOOR}"/>'
)


def on_contacts():
    """Return the file with spheres on a floor in place of the pins."""
    text = models.path("planar_biped").read_text()
    text = re.sub(r"<connect ([^>]*)/>", r'<connect \1 active="false"/>', text)
    text = re.sub(r'<site name="\w+_foot" (pos="[^"]*")/>', SOLE, text)
    floor = '<geom name="floor" type="plane"'
    return text.replace(floor, f'{floor} pos="0 0 -0.02" conaffinity="1" friction="{FLOOR}"')


@pytest.mark.long
def test_feet_slip_less_in_mujoco_where_the_law_keeps_their_forces_inside_the_cones():
    """190 N on the trunk, mass 10 % off; the hip stands where the feet slid to in the end."""
    linear, slid = at_rest("planar_biped"), []
    plant = {"perturb": {"mass": 0.1}, "delay": 1}
    plant["disturbance"] = lambda t: 190.0 * (0.3 <= t < 0.5) * np.eye(7)[0]
    for outputs in ([], cones(linear, 20.0, COUNTED_ON)):
        options = {"period": PERIOD, "outputs": outputs, "delay": 1}
        law = mechanism_mpc(linear, 15, 1e-4, Q=(10.0, 0.1), **options)
        recording = recorded(law, linear, on_contacts(), 1.6, **plant)
        assert not np.any(recording.status)
        assert np.abs(recording.q[:, 0] - linear.q[0]).max() > 0.03
        slid.append(abs(recording.q[-1, 0] - linear.q[0]))
    assert slid[0] > 0.01
    assert slid[1] < 0.008
