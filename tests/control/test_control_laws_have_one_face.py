"""Laws, regulators, MPC and inverse dynamics have the same members: references by name, `solve`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.refusals import refused

import mbcasadi as mb
from mbcasadi import control, models, mpc
from mbcasadi import errors as err
from mbcasadi.control import LawOptions, laws, regulators

PERIOD = 0.01
four_bar = pytest.fixture(scope="module")(lambda: mb.read_mjcf(models.path("four_bar")))


@pytest.fixture(scope="module")
def held(four_bar):
    return mb.equilibrium(four_bar)


@pytest.fixture(scope="module")
def made(four_bar, held):
    crank = control.PostureTask(("crank",))
    linear = mb.linearize(four_bar, held)
    Q = np.repeat([10.0, 0.1], 3)
    ocp = mpc.optimal_control_problem(four_bar, 3, PERIOD, [mpc.Cost(Q=Q, R=1.0)])
    return {
        "qp": control.InverseDynamicsQP(four_bar, [crank], period=PERIOD),
        "law": laws.computed_torque(four_bar, crank, options=laws.LawOptions(period=PERIOD)),
        "theta": laws.quasi_velocity_tracking(four_bar, options=laws.LawOptions(period=PERIOD)),
        "dependent": laws.dependent_regulation(
            four_bar, kp=1.0, kd=1.0, options=laws.LawOptions(period=PERIOD)
        ),
        "lti": laws_of_linear(linear),
        "lqr": regulators.lqr(
            linear, Q, 1.0, track_reference=True, options=LawOptions(period=PERIOD)
        ),
        "mpc": mpc.linear_mpc(linear, mpc.LinearOptions(3, Q, 1.0, period=PERIOD)),
        "preview": mpc.linear_mpc(
            linear, mpc.LinearOptions(3, Q, 1.0, period=PERIOD, preview=True)
        ),
        "iteration": mpc.real_time_iteration(ocp),
    }


def laws_of_linear(linear):
    return regulators.lti_inverse_dynamics(linear, options=LawOptions(period=PERIOD))


KINDS = ("qp", "law", "theta", "dependent", "lti", "lqr", "mpc", "preview", "iteration")
OTHERS = ("mpc", "preview", "iteration")  # the rest keep the contract of every controller


@pytest.mark.parametrize("kind", OTHERS)
def test_every_controller_has_the_same_members(made, kind):
    law = made[kind]
    assert law.period == PERIOD == law.controller.period
    assert_array_equal(law.z0, law.controller.z0)
    assert law.function.name() == law.controller.name
    sizes = [place.stop - place.start for place in law.reference_slices.values()]
    assert sum(sizes) == law.nref == law.function.numel_in("ref")


@pytest.mark.parametrize("kind", OTHERS)
def test_solve_is_the_function_and_knows_its_status(made, held, kind):
    law, rng = made[kind], np.random.default_rng(1)
    q, v, ref = held.q, 0.1 * rng.standard_normal(3), law.reference_at(held.q)
    solution, out = law.solve(q, v, ref), law.function(q=q, v=v, ref=ref, z=law.z0)
    assert_array_equal(solution.u, np.array(out["u"]).ravel())
    assert_array_equal(solution.z_next, np.array(out["z_next"]).ravel())
    assert solution.status == int(out["status"])
    assert solution.status_text in law.controller.statuses[solution.status]
    assert law.solve(q, np.full(3, np.nan)).status == 3


@pytest.mark.parametrize("kind", KINDS[:-1])  # one step of an iteration is no solution yet
def test_the_reference_at_a_pose_of_equilibrium_holds_it(made, held, kind):
    """The control is the one that carries the mechanism there, by the balance of forces."""
    law = made[kind]
    u = law.solve(held.q, np.zeros(3), law.reference_at(held.q)).u
    assert_allclose(u, held.u, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", OTHERS)
def test_slices_are_given_by_keyword_or_by_their_own_names(made, kind):
    law = made[kind]
    name, place = next(iter(law.reference_slices.items()))
    value = np.linspace(1.0, 2.0, place.stop - place.start)
    by_name = law.reference({name: value})
    assert_array_equal(by_name, law.reference(**{name.replace(".", "_"): value}))
    assert_array_equal(by_name[place], value)
    refused(err.UnknownNameError, "no_such", lambda: law.reference(no_such=1.0))


def test_a_slice_given_twice_is_refused(made):
    with pytest.raises(err.ProblemError, match="given twice"):
        made["law"].reference({"posture.q": 0.1}, posture_q=0.2)


def test_a_pose_that_nothing_holds_is_refused_with_the_nearest_one():
    cart = mb.read_mjcf(models.path("cart_pole"))
    linear = mb.linearize(cart, mb.equilibrium(cart))
    tilted = linear.q + np.array([0, 0, 0, 0, 0.5])  # the pole leans
    law = regulators.lqr(linear, np.ones(2 * cart.nv), 1.0, track_reference=True)
    refused(err.ProblemError, "no control holds", lambda: law.reference_at(tilted))


def test_laws_without_a_reference_of_a_pose_say_so(four_bar, made, held):
    regulator = regulators.lqr(mb.linearize(four_bar, held), np.ones(6), 1.0)
    refused(err.ProblemError, "no reference", lambda: regulator.reference_at(held.q))
    assert regulator.solve(held.q, np.zeros(3)).solved
    force = laws.constraint_force_control(four_bar)
    refused(err.ProblemError, "no reference that holds a pose", lambda: force.reference_at(held.q))
    refused(err.ProblemError, "needs ref", lambda: force.solve(held.q, np.zeros(3)))
    plain = mpc.lti_mpc(mpc.LinearModel.of([[1.0]], [[1.0]], 0.1), mpc.LinearOptions(2, 1.0, 1.0))
    refused(err.ProblemError, "measures x and has no pose", lambda: plain.reference_at([0.0]))


@pytest.mark.parametrize(
    ("kind", "given"),
    [("qp", "act"), ("qp", "f_measured"), ("qp", "tuning"), ("law", "f_c"), ("law", "mask")],
)
def test_an_input_that_a_controller_does_not_have_is_refused(made, held, kind, given):
    value = {"kp": 1.0} if given == "tuning" else np.zeros(3)
    with pytest.raises(err.MbcasadiError, match=f"no input '{given}'"):
        made[kind].solve(held.q, np.zeros(3), **{given: value})


def test_a_plan_begins_where_the_mechanism_is(made, held):
    for kind in ("mpc", "iteration"):
        solution = made[kind].solve(held.q, np.zeros(3))
        assert_allclose(solution.planned_states[0, :3], held.q, atol=1e-8)
        assert solution.planned_controls.shape == (3, 1)
        assert_allclose(solution.planned_controls[0], solution.u, atol=1e-9)
