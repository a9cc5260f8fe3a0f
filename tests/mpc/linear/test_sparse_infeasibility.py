"""A sparse form says infeasible exactly where there is no solution, as the condensed form does."""

import numpy as np
import pytest
from scipy.optimize import linprog
from support import linear_mpc_cases as cases

from mbcasadi import mpc
from mbcasadi.description.status import Status
from mbcasadi.qp.plugins import SPARSE_SOLVERS

FORCE, CHANGE = 1.0, 0.7
BOUNDS = {"u_bounds": [[-FORCE, FORCE]], "du_bounds": [[-CHANGE, CHANGE]]}
LOW, HIGH = cases.SPEED.lower[0], cases.SPEED.upper[0]
A, B, DRIFT = cases.MODEL.A, cases.MODEL.B, cases.MODEL.drift
ONE_STEP = {"piqp": {"piqp": {"max_iter": 1}}, "proxqp": {"proxqp": {"max_iter": 1}}}
FEASIBLE, IMPOSSIBLE = np.array([0.3, 0.2]), np.array([0.3, 1.5])


def small_mpc(form, solver=None):
    options = {"form": form, "solver": solver, "outputs": [cases.SPEED]} | BOUNDS
    return cases.controller_of(**options)


def outcome(law, *measured, last=()):
    """Return the status of a tick whose last control was `last`."""
    z = law.controller.z0.copy()
    if len(last):
        names = next(signal.components for signal in law.controller.inputs if signal.name == "z")
        z[names.index("last.u0")] = last[0]
    return Status(int(law.function(*measured, z)[2]))


def has_motion(step, x0, controls, rows):
    """Return whether some controls keep all rows, by linear programming over states and controls.

    Args:
        step: A, B and drift.
        x0: first state.
        controls: lower and upper bounds (N, nu), last control and bound of changes, or None.
        rows: C, lower and upper of `C x` at the samples 1..N.
    """
    (A, B, drift), (low, high, last, change), (C, least, most) = step, controls, rows
    (nx, nu), N = B.shape, len(low)
    size = N * (nu + nx)  # u_0, x_1, u_1, x_2, ...
    equal, right, less, ends = [], [], [], []

    def place(k, first, count):
        picked = np.zeros((count, size))
        picked[:, k * (nu + nx) + first :][:, :count] = np.eye(count)
        return picked

    for k in range(N):
        u, x = place(k, 0, nu), place(k, nu, nx)
        before = place(k - 1, nu, nx) if k else np.zeros((nx, size))
        equal.append(x - B @ u - A @ before)
        right.append(drift + (0 if k else A @ x0))
        bounded = [(C @ x, most), (-C @ x, -least)]
        if change is not None:
            u_before = place(k - 1, 0, nu) if k else np.zeros((nu, size))
            start = np.zeros(nu) if k else last
            bounded += [(u - u_before, start + change), (u_before - u, change - start)]
        for row, end in bounded:
            less.append(row)
            ends.append(end)
    sides = np.full((N, nu + nx, 2), [-np.inf, np.inf])
    sides[:, :nu, 0], sides[:, :nu, 1] = low, high
    found = linprog(
        np.zeros(size), np.vstack(less), np.concatenate(ends), np.vstack(equal),
        np.concatenate(right), sides.reshape(-1, 2), method="highs",
    )  # fmt: skip
    return found.status == 0


def small_motion(x0, last):
    limits = np.full((cases.HORIZON, 1), FORCE)
    row = np.array([[0.0, 1.0]]), np.array([LOW]), np.array([HIGH])
    return has_motion((A, B, DRIFT), x0, (-limits, limits, last, CHANGE), row)


@pytest.mark.parametrize("solver", ["proxqp", "piqp", "qrqp"])
def test_states_are_infeasible_exactly_where_linear_programming_says_so(solver):
    sparse, dense = small_mpc("sparse", solver), small_mpc("condensed")
    rng, seen = np.random.default_rng(3), {True: 0, False: 0}
    for _ in range(60):
        x0, last = np.array([1.0, 0.6]) * rng.standard_normal(2), rng.uniform(-FORCE, FORCE, 1)
        ref, feasible = 0.5 * rng.standard_normal(3), small_motion(x0, last)
        status = outcome(sparse, x0, ref, last=last)
        assert (status == Status.INFEASIBLE) == (not feasible)
        if not feasible:
            assert outcome(dense, x0, ref, last=last) == Status.INFEASIBLE
        elif solver != "qrqp":  # which gives up on some
            assert status == Status.SOLVED
        seen[feasible] += 1
    assert min(seen.values()) > 10


@pytest.mark.parametrize("solver", ["daqp", "qrqp"])
def test_so_are_those_of_the_condensed_form_with_each_solver(solver):
    law, rng = small_mpc("condensed", solver), np.random.default_rng(4)
    for _ in range(30):
        x0, last = np.array([1.0, 0.6]) * rng.standard_normal(2), rng.uniform(-FORCE, FORCE, 1)
        status = outcome(law, x0, np.zeros(3), last=last)
        assert (status == Status.INFEASIBLE) == (not small_motion(x0, last))


@pytest.mark.parametrize("solver", ONE_STEP)
def test_a_solver_that_only_stops_proves_nothing_and_hides_nothing(solver, monkeypatch):
    for x0, feasible in ((FEASIBLE, True), (IMPOSSIBLE, False)):
        assert small_motion(x0, np.zeros(1)) == feasible
        whole = outcome(small_mpc("sparse", solver), x0, np.zeros(3))
        assert whole == (Status.SOLVED if feasible else Status.INFEASIBLE)
    monkeypatch.setitem(SPARSE_SOLVERS, solver, ONE_STEP[solver])
    stopped = small_mpc("sparse", solver)
    assert outcome(stopped, FEASIBLE, np.zeros(3)) == Status.FAILED
    assert outcome(stopped, IMPOSSIBLE, np.zeros(3)) == Status.INFEASIBLE


SLOW, TORQUE, SAMPLES = 0.1, 0.5, 6  # rad/s of the crank, N m, samples


def four_bar(form):
    linear = cases.at_rest("four_bar")
    row = mpc.deviation_output(linear, "slow", np.eye(6)[3], -SLOW, SLOW)
    options = {"outputs": [row], "u_bounds": [[-TORQUE, TORQUE]], "period": 0.02}
    return linear, cases.mechanism_mpc(linear, SAMPLES, 1e-2, form=form, **options)


@pytest.mark.parametrize("form", ["sparse", "multipliers"])
def test_a_mechanism_too_fast_for_its_bound_is_infeasible_in_every_form(form):
    linear, law = four_bar(form)
    _, dense = four_bar("condensed")
    model, ref = law.problem.model, cases.held(law, linear)
    crank = (linear.to_dv[0] @ np.eye(linear.nx)).reshape(1, -1)
    limits = np.full((SAMPLES, 1), TORQUE)
    # An interval's drift at the equilibrium is zero; controls are deviations from the holding one.
    controls = (-limits - linear.u, limits - linear.u, np.zeros(1), None)
    row = crank, np.array([-SLOW]), np.array([SLOW])
    rng, seen = np.random.default_rng(5), {True: 0, False: 0}
    for _ in range(16):
        x0 = np.array([0.1, 1.5]) * rng.standard_normal(2)
        q, v = linear.state(x0)
        start = linear.coordinates(q, v)
        feasible = has_motion((model.A, model.B, np.zeros(linear.nx)), start, controls, row)
        expected = Status.SOLVED if feasible else Status.INFEASIBLE
        assert outcome(law, q, v, ref) == outcome(dense, q, v, ref) == expected
        seen[feasible] += 1
    assert min(seen.values()) >= 3
