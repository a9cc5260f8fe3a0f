"""Rows of bodies held at several points: their derivatives, and where they are independent."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from dynamics_states import MODELS, case, consistent_state, null_projector, the_case
from support.compiled import compiled

from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.dynamics import forward_dynamics, forward_dynamics_derivatives
from mbcasadi.dynamics.reduced_rows import reduced_rows, reduced_size
from mbcasadi.dynamics.residual_jacobians import reduced_residual_fun
from mbcasadi.dynamics.row_independence import rows_are_independent
from mbcasadi.dynamics.terms import State, state_symbols, terms
from mbcasadi.system import read_mjcf

ROUNDING = 1e-11  # relative to the largest entry
STEP = 1e-5
DIFFERENCE_TOL = 1e-6  # STEP² times third derivatives, relative
SOLE = [(0.15, 0.04), (0.15, -0.04), (-0.06, 0.04), (-0.06, -0.04)]
HEIGHT = -0.0663

Held = dict[str, list[tuple[float, float, float]]]


def held_to_the_world(name, held, *, body_first=True):
    """Return one of our models with points of bodies connected to the world."""
    spec = mujoco.MjSpec.from_file(str(MODELS / f"{name}.xml"))
    for body, points in held.items():
        for point in points:
            joined = spec.add_equality()
            joined.type = mujoco.mjtEq.mjEQ_CONNECT
            joined.objtype = mujoco.mjtObj.mjOBJ_BODY
            joined.name1, joined.name2 = (body, "world") if body_first else ("world", body)
            joined.data[:3] = point
    return spec.compile()


def humanoid(points=4, *, body_first=True):
    sole = [(x, y, HEIGHT) for x, y in SOLE[:points]]
    held = {f"{side}_foot": sole for side in ("left", "right")} if points else {}
    return held_to_the_world("humanoid", held, body_first=body_first)


@pytest.mark.parametrize("points", [2, 4])
def test_reduced_rows_are_differentiated_as_their_matrices_are(points):
    system = read_mjcf(humanoid(points))
    rng = np.random.default_rng(21)
    q = system.integrate(system.tree.q0, 0.3 * rng.standard_normal(system.nv))
    values = {"q": q, "v": rng.standard_normal(system.nv), "a": rng.standard_normal(system.nv)}
    values["lam"] = rng.standard_normal(reduced_size(system))
    found = reduced_residual_fun(system, None, tangent=True, forces=False)(**values)
    for key, expected in differentiated(system)(**values).items():
        error = np.abs((found[key] - expected).full())
        assert error.max() < ROUNDING * np.abs(expected.full()).max(), key


def differentiated(system):
    """Return rho_q, rho_v and turn_q by differentiation of the reduced rows and of M a + h."""
    state: State[ca.SX] = state_symbols(system, ca.SX)
    all_terms = terms(system, state)
    rows = reduced_rows(system, state, all_terms, 1.0)
    a, lam = ca.SX.sym("a", system.nv), ca.SX.sym("lam", rows.A.shape[0])
    force = rows.A.T @ lam - all_terms.M @ a - all_terms.h
    rho = ca.cse(ca.vertcat(force, rows.A @ a + rows.c))
    N = system.velocity_map(state.q)
    outputs = {
        "rho_q": ca.jacobian(rho, state.q) @ N,
        "rho_v": ca.jacobian(rho, state.v),
        "turn_q": ca.jacobian(rows.all_multipliers(lam), state.q) @ N,
    }
    inputs = {"q": state.q, "v": state.v, "a": a, "lam": lam}
    return ca.Function("d", [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])


@pytest.mark.parametrize(("points", "body_first"), [(2, False), (4, True)])
@pytest.mark.every(2)
def test_derivatives_of_a_humanoid_on_its_soles_are_those_of_differences(points, body_first):
    robot = case("humanoid on its soles", humanoid(points, body_first=body_first), spread=0.1)
    system, rng = robot.system, np.random.default_rng(22)
    fd, derivatives = forward_dynamics(system), forward_dynamics_derivatives(system)
    q, v = consistent_state(robot, rng)
    f = rng.standard_normal(system.nv)
    found = derivatives(q=q, v=v, f=f)
    along = null_projector(system.constraint_jacobian(q).full()) @ rng.standard_normal(system.nv)
    ends = []
    for sign in (1, -1):
        q_end = on_manifold(system, system.integrate(q, sign * STEP * along))
        ends.append((q_end, fd(q=q_end, v=v, f=f)))
    dq = system.difference(ends[1][0], ends[0][0]).full()
    for key in ("a", "lam"):
        difference = (ends[0][1][key] - ends[1][1][key]).full()
        error = np.abs(found[f"d{key}dq"].full() @ dq - difference).max()
        assert error < DIFFERENCE_TOL * np.abs(difference).max(), key


POINTS = "".join(f"<connect body1='a' body2='b' anchor='{x}'/>" for x in (".1 .05 0", ".2 -.1 .1"))
WELD = "<weld body1='a' body2='b' relpose='1 .2 0 1 0 0 0'/>"
INERTIAS = (
    "pos='.02 .01 .03' diaginertia='.03 .04 .05'",
    "pos='0 .03 .01' diaginertia='.01 .03 .02'",
)


def two_bodies(rows):
    """Return two free bodies with rows between them."""
    body = "<body name='{}' pos='{} 0 1'><freejoint/><inertial mass='{}' {}/></body>"
    bodies = "".join(body.format(*x) for x in zip("ab", (0, 0.3), (2, 1), INERTIAS, strict=True))
    return read_mjcf(f"<mujoco><worldbody>{bodies}</worldbody><equality>{rows}</equality></mujoco>")


@pytest.mark.long
def test_rows_that_are_far_open_leave_the_derivatives_along_the_closed_ones_right():
    """Two points hold a body to another one, which repeats a row where both are closed."""
    for rows, rank in ((POINTS, 5), (POINTS + WELD, 8)):
        system = two_bodies(rows)
        fd, derivatives = forward_dynamics(system), forward_dynamics_derivatives(system)
        rng, q = np.random.default_rng(24), system.tree.q0
        values = {"v": rng.standard_normal(12), "f": rng.standard_normal(12)}
        dadq = derivatives(q=q, **values)["dadq"].full()
        A = system.constraint_jacobian(q).full()
        assert np.linalg.matrix_rank(A, 1e-9) == rank
        for along in np.linalg.svd(A)[2][rank:]:
            ends = [fd(q=system.integrate(q, s * STEP * along), **values)["a"] for s in (1, -1)]
            difference = (ends[0] - ends[1]).full().ravel() / (2 * STEP)
            error = np.abs(dadq @ along - difference).max()
            assert error < DIFFERENCE_TOL * (1 + np.abs(difference).max())


def on_manifold(system, q):
    for _ in range(10):
        A = system.constraint_jacobian(q).full()
        q = system.integrate(q, -np.linalg.pinv(A, 1e-8) @ system.constraint(q).full().ravel())
    return q


@pytest.mark.long
def test_the_c_of_an_export_equals_the_function(tmp_path):
    system = two_bodies(POINTS)
    function = forward_dynamics_derivatives(system)
    rng = np.random.default_rng(23)
    q = system.integrate(system.tree.q0, 0.3 * rng.standard_normal(system.nv))
    values = {"q": q, "v": rng.standard_normal(system.nv), "f": rng.standard_normal(system.nv)}
    expected = function(**values)
    for external in (compiled_function(function), compiled(function, tmp_path)):
        found = external(**values)
        for key, value in expected.items():
            error = np.abs((found[key] - value).full()).max()
            assert error < 10 * ROUNDING * np.abs(value.full()).max(), key


def test_contacts_of_a_free_base_are_independent_and_loops_are_not():
    independent = {"feet": the_case("standing_quadruped").system, "soles": read_mjcf(humanoid())}
    for name, system in independent.items():
        assert rows_are_independent(system), name
    leg = {"left_foot": [(0.1, 0.0, 0.0)], "left_thigh": [(0.0, 0.0, -0.1)]}
    dependent = {
        "two bodies of a leg": read_mjcf(held_to_the_world("humanoid", leg)),
        "loops": the_case("bricard").system,
        "nothing": read_mjcf(humanoid(0)),
    }
    for name, system in dependent.items():
        assert not rows_are_independent(system), name
