"""Terminal sets: exactly the states from which the regulator breaks no bound, and what they buy."""

import numpy as np
import pytest
from scipy.optimize import linprog
from support.linear_mpc_cases import at_rest, held, mechanism_mpc

import mbcasadi.errors as err
from mbcasadi import mpc
from mbcasadi.mpc.linear.terminal_set import invariant_set

PERIOD = 0.1
DOUBLE = mpc.LinearModel.of([[1, PERIOD], [0, 1]], [[PERIOD**2 / 2], [PERIOD]], PERIOD)
FAR = np.array([2.0, 0.5])
BOX = mpc.Output("x", np.eye(2), np.zeros((2, 1)), -FAR, FAR)
SOFT = mpc.Output("x", np.eye(2), np.zeros((2, 1)), -FAR, FAR, 100.0)
MIXED = mpc.Output("mix", [[0.5, 1.0]], [[0.4]], [-0.4], [0.5])
WEIGHTS = [1.0, 0.1], 0.1
CASES = {
    "control": {"u_bounds": [[-1.0, 0.7]]},
    "box": {"u_bounds": [[-1.0, 0.7]], "outputs": [BOX]},
    "mixed": {"u_bounds": [[-1.0, 0.7]], "outputs": [BOX, MIXED]},
    "rates": {"u_bounds": [[-1.0, 0.7]], "du_bounds": [[-0.3, 0.2]]},
}
EDGE = 1e-6  # states nearer than this to the edge are not asked about
FOREVER = 150  # samples


def ended(Q=WEIGHTS[0], R=WEIGHTS[1], **options):
    return mpc.LinearOptions(5, Q, R, terminal_set=True, **options)


def terminal_set_of(case):
    return mpc.linear_problem(DOUBLE, ended(**CASES[case]))


def worst_of_regulator(problem, x, u):
    """Return by how much motions under the regulator exceed their bounds, each scaled to one.

    One column for each motion.
    """
    K, worst = problem.terminal.K, np.full(x.shape[1], -np.inf)
    A, B, _ = problem.model.interval(0)
    for _ in range(FOREVER):
        new = -K @ x
        rows = [(new, *problem.u_bounds.T), (new - u, *problem.du_bounds.T)]
        rows += [(one.C @ x + one.D @ new, one.lower, one.upper) for one in problem.outputs]
        for value, *ends in rows:
            for end in ends:
                for row, bound in zip(value, end, strict=True):
                    worst = np.maximum(worst, row / bound if np.isfinite(bound) else -np.inf)
        x, u = A @ x + B @ new, new
    return worst - 1


@pytest.mark.parametrize("case", CASES)
def test_a_state_is_in_the_set_exactly_if_the_regulator_breaks_nothing_from_there(case):
    problem, rng = terminal_set_of(case), np.random.default_rng(0)
    x = np.array([[0.4], [0.3]]) * rng.standard_normal((2, 400))
    u = rng.uniform(-0.3, 0.3, (1, 400))
    worst = worst_of_regulator(problem, x, u)
    is_inside = [problem.terminal.contains(*pair) for pair in zip(x.T, u.T, strict=True)]
    clear = np.abs(worst) > EDGE
    np.testing.assert_array_equal(np.array(is_inside)[clear], (worst < 0)[clear])
    assert min(np.sum(worst < 0), np.sum(worst > 0)) > 20


@pytest.mark.parametrize("case", CASES)
def test_the_set_is_invariant_and_no_row_is_idle(case):
    """By linear programs: no step leaves it, and each row bounds something that no other does."""
    problem = terminal_set_of(case)
    end, (A, B, _) = problem.terminal, problem.model.interval(0)
    F = np.hstack([end.of_x, end.of_u])
    step = np.block([[A - B @ end.K, np.zeros((2, 1))], [-end.K, np.zeros((1, 1))]])

    def reach(rows, row):
        bounds = np.ones(len(rows))
        got = linprog(-row, A_ub=rows, b_ub=bounds, bounds=(None, None), method="highs")
        return np.inf if got.status else -got.fun

    for row in F:
        assert reach(F, row @ step) < 1 + 1e-8
    for i in range(len(F)):
        assert reach(np.delete(F, i, axis=0), F[i]) > 1 + 1e-9


def test_by_hand_one_state_that_only_the_control_bounds():
    """`x_next = 1.2 x + u`: the regulator stays inside its bound where it starts inside it."""
    model = mpc.LinearModel.of([[1.2]], [[1.0]], PERIOD)
    end = mpc.linear_problem(
        model, mpc.LinearOptions(3, 1.0, 1.0, u_bounds=[[-1.0, 0.5]], terminal_set=True)
    ).terminal
    K = end.K[0, 0]
    assert end.steps == 0
    np.testing.assert_allclose(np.sort(end.of_x.ravel()), np.sort([K / 1.0, -K / 0.5]), atol=1e-12)


def test_by_hand_a_double_integrator_that_a_slow_regulator_swings():
    """A deadbeat gain on the double integrator in unit time, |u| <= 1: both rows, by hand.

    `u = -(x + 1.5 v)` brings any state to rest in two samples: `u_0 = -(x + 1.5 v)`,
    `u_1 = x + 0.5 v`, then nothing.
    """
    model = mpc.LinearModel.of([[1.0, 1.0], [0.0, 1.0]], [[0.5], [1.0]], 1.0)
    none = np.tile([-np.inf, np.inf], (1, 1))
    K, one = np.array([[1.0, 1.5]]), np.array([[-1.0, 1.0]])
    end = invariant_set(model, K, one, none, ())
    expected = {(1.0, 1.5), (-1.0, -1.5), (1.0, 0.5), (-1.0, -0.5)}
    assert {tuple(row) for row in end.of_x.round(9)} == expected
    assert end.steps == 1


def statuses_of(law, x, ticks=25):
    """Return the statuses (ticks, n) of closed loops with the model as plant, from x (2, n)."""
    count = x.shape[1]
    law, z, seen = (law.function.map(count), np.tile(law.controller.z0[:, None], (1, count)), [])
    for _ in range(ticks):
        u, z, status, *_ = law(x, np.zeros((3, count)), z)
        seen.append(np.array(status).ravel())
        x = DOUBLE.A @ x + DOUBLE.B @ np.array(u)
    return np.array(seen)


def test_a_plan_that_ends_in_the_set_has_a_successor_and_without_it_plans_run_out():
    options = {"u_bounds": [[-0.5, 0.5]], "outputs": [BOX], "P": np.zeros((2, 2))}
    start = np.random.default_rng(1).uniform(-FAR, FAR, (600, 2)).T
    made = [
        mpc.lti_mpc(DOUBLE, mpc.LinearOptions(4, 1.0, 1.0, terminal_set=end, **options))
        for end in (True, False)
    ]
    safe, bold = (statuses_of(law, start) for law in made)
    began = safe[0] == 0
    assert np.sum(began) > 100
    assert np.all(safe[:, began] == 0)
    assert np.sum((bold[0] == 0) & np.any(bold == 2, axis=0)) > 3


def test_condensed_sparse_and_explicit_end_in_the_same_set():
    linear = at_rest("four_bar")
    row = mpc.deviation_output(linear, "speed", np.eye(6)[3], -2.0, 2.0)
    options = {"outputs": [row], "u_bounds": [[-0.6, 0.3]], "terminal_set": True}
    forms = ("condensed", "sparse", "multipliers")
    made = {form: mechanism_mpc(linear, 8, 0.1, form=form, **options) for form in forms}
    end = made["condensed"].problem.terminal
    rng, reached, seen = np.random.default_rng(0), 0, {0: 0, 2: 0}
    for _ in range(40):
        q, v = linear.state(np.array([0.3, 2.0]) * rng.standard_normal(2))
        answers = []
        for law in made.values():
            ref = held(law, linear)
            u, _, status, *_ = law.function(q, v, ref, law.controller.z0)
            answers.append([float(u), float(status)])
        seen[int(answers[0][1])] += 1
        for other in answers[1:]:  # their solver seldom proves infeasibility
            assert abs(other[0] - answers[0][0]) < 1e-7
            assert other[1] in {0: (0,), 2: (2, 4)}[int(answers[0][1])]
        law = made["condensed"]
        x, _ = law.controller.prediction(q, v, ref, law.controller.z0)
        if answers[0][1] == 0:
            x_N = linear.coordinates(np.array(x)[:3, -1], np.array(x)[3:, -1])
            assert np.all(end.of_x @ x_N <= 1 + 1e-5)
            reached += np.any(end.of_x @ x_N > 0.999)
    assert min(*seen.values(), reached) > 2


ROLL = mpc.LinearModel.of([[1.0]], [[1.0]], PERIOD, [0.1])
WRONG = {
    "drift": ({"model": ROLL, "Q": [1.0]}, "without drift"),
    "no margin": ({"u_bounds": [[0.0, 1.0]]}, "'u0' is bounded by 0, which leaves no margin"),
    "blocks": ({"u_bounds": [[-1, 1]], "blocks": [1, 2, 2]}, "expected free moves"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_set_that_there_is_not_is_refused(case):
    options, words = WRONG[case]
    model = options.pop("model", DOUBLE)
    with pytest.raises(err.ProblemError, match=words):
        mpc.lti_mpc(model, ended(**options))


def test_soft_bounds_do_not_narrow_the_set():
    hard, soft = (mpc.linear_problem(DOUBLE, ended(outputs=[one])) for one in (BOX, SOFT))
    assert len(hard.terminal.of_x) > 3
    assert soft.terminal.of_x.shape == (0, 2)
