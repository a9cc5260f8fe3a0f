"""Intervals of given, unequal lengths: what follows them, and how solutions converge with them."""

import functools

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole

import mbcasadi as mb
from mbcasadi import errors, mpc
from mbcasadi.control.tasks.reference import slot_slices

SAME = 1e-12  # rounding of problems of numbers about one
RATE_ERROR = 1e-6  # of central differences, relative

SERVO = """<mujoco><worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0" damping="2"
stiffness="30"/><geom size=".1" mass="1" pos=".3 0 0"/></body></worldbody>
<actuator><position name="p" joint="a" kp="500" kv="20" ctrlrange="-1 1" forcerange="-9 9"/>
</actuator></mujoco>"""
COST = {"Q": [3.0, 30.0, 0.1, 0.1], "R": [1e-2], "Q_end": [30.0, 300.0, 1.0, 1.0]}


ORDER_2, ORDER_4 = mpc.StepOptions(order=2), mpc.StepOptions(order=4)

BOX = """<mujoco><worldbody><body pos="0 0 1"><freejoint/>
<geom type="box" size=".2 .1 .1" mass="2"/><site name="a" pos=".2 0 -.1"/><body>
<joint name="arm" axis="0 1 0" damping="1"/><geom size=".05" mass=".5" pos="-.3 0 0"/>
<site name="b" pos="-.3 0 -.05"/></body></body>
</worldbody><actuator><motor name="m" joint="arm" ctrlrange="-9 9"/></actuator></mujoco>"""


@functools.cache
def walker(*period):
    """Return a free box with an arm, on two contacts that a mask switches."""
    feet = [mb.Contact(name, friction=0.5, sides=4, max_force=300.0) for name in "ab"]
    system = mb.with_contacts(mb.read_mjcf(BOX), feet).with_mask()
    cost = mpc.Cost(Q=[1.0] * 14, R=[1e-3], S=[1e-3])
    parts = [cost, mpc.ContactCones(feet, linear_penalty=0.1), mpc.Disturbance()]
    h = period[0] if len(period) == 1 else period
    return mpc.optimal_control_problem(system, 2, h, parts, step=mpc.SemiImplicitStep())


@functools.cache
def servo(*period, explicit=False):
    N, h = max(2, len(period)), period[0] if len(period) == 1 else period
    parts = [mpc.Cost(Q=[1.0, 0.1], R=[1e-2], S=[2.0]), mpc.StageBounds(du=[[-0.3, 0.3]])]
    return mpc.optimal_control_problem(
        mb.read_mjcf(SERVO), N, h, parts, step=ORDER_2 if explicit else mpc.SemiImplicitStep()
    )


def explicit(*period):
    return servo(*period, explicit=True)


def swing(period, N, step=ORDER_4):
    return mpc.optimal_control_problem(
        cart_pole(limit=8.0), N, period, [mpc.Cost(**COST)], step=step
    )


def random_point(ocp, seed=0):
    """Return x near rest and u."""
    rng, nv = np.random.default_rng(seed), ocp.system.nv
    q = ocp.system.integrate(ocp.rest[: ocp.system.nq], 0.1 * rng.standard_normal(nv))
    rest = rng.standard_normal(ocp.nx - ocp.system.nq)
    return np.append(np.array(q).ravel(), rest), rng.standard_normal(ocp.nu)


@pytest.mark.parametrize("make", [walker, servo, explicit])
def test_equal_lengths_as_data_are_the_problem_of_one_period(make):
    one, given = make(0.013), make(0.013, 0.013)
    at = random_point(one)
    for key in ("dynamics", "residual"):
        a, b = (np.array(getattr(o, key)(*at, o.parameters()[0])) for o in (one, given))
        np.testing.assert_allclose(b, a, atol=SAME * (1 + np.abs(a).max()))
    assert set(slot_slices(given.slots)) - set(slot_slices(one.slots)) == {"step"}
    np.testing.assert_allclose(given.times, one.times, atol=SAME)


@pytest.mark.parametrize("make", [walker, servo])
def test_derivatives_along_tangents_are_those_of_equal_lengths(make):
    one, given = make(0.013), make(0.013, 0.013)
    x, u = random_point(one)
    a, b = (o.motion.derivatives(x, u, o.parameters()[0]) for o in (one, given))
    for left, right in zip(a, b, strict=True):
        left, right = left.full(), right.full()
        np.testing.assert_allclose(right, left, atol=SAME * (1 + np.abs(left).max(initial=0.0)))


@pytest.mark.parametrize("make", [walker, servo, explicit])
def test_the_motion_is_differentiable_by_the_length(make):
    ocp = make(0.013, 0.013)
    x, u = random_point(ocp)
    p, place = ocp.parameters()[0], slot_slices(ocp.slots)["step"]
    jacobian = ocp.dynamics.jacobian()(x, u, p, 0)[2][:, place.start].full().ravel()
    h = 1e-6
    up, down = (p + h * side * np.eye(p.size)[place.start] for side in (1, -1))
    expected = (ocp.dynamics(x, u, up) - ocp.dynamics(x, u, down)).full().ravel() / (2 * h)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(jacobian, expected, atol=RATE_ERROR * np.abs(expected).max())


def cost_of(ocp, x, u, p):
    return sum(float(ca.sumsqr(ocp.residual(x, *each))) / 2 for each in zip(u, p, strict=True))


def test_costs_and_changes_of_an_interval_are_those_of_its_halves():
    whole, halves = servo(0.02, 0.02), servo(0.02, 0.01, 0.01)
    x, step = np.array([0.1, 0.0, 0.0]), np.array([0.2])
    still = np.append(x[:2], step)  # no change of the control: a cost per second
    for o, lengths in ((whole, [0.02]), (halves, [0.01, 0.01])):
        p = o.parameters()[-len(lengths) - 1 : -1]
        np.testing.assert_allclose(p[:, slot_slices(o.slots)["step"]].ravel(), lengths)
        o_cost = cost_of(o, still, [step] * len(lengths), p)
        np.testing.assert_allclose(o_cost, 0.01 * (0.1**2 + 1e-2 * 0.2**2), rtol=1e-9)

    # a ramp: half the change in half the time
    def change(o, du, k):
        p, at = o.parameters()[k], np.array([0.0, 0.0, 0.0])
        quiet = float(ca.sumsqr(o.residual(at, [0.0], p))) / 2
        moved = float(ca.sumsqr(o.residual(at, [du], p))) / 2
        own = o.parameters()[k, slot_slices(o.slots)["step"]][0] * 1e-2 * du**2 / 2
        return moved - quiet - own, float(o.path(at, [du], p)[o.names("path").index("du.p")])

    (once, row), (half, half_row) = change(whole, 0.2, 1), change(halves, 0.1, 2)
    np.testing.assert_allclose([2 * half, half_row], [once, row], rtol=1e-9)
    assert once == pytest.approx(0.5 * 2.0 * 0.2**2)


def test_the_price_of_a_cone_counts_by_the_length():
    given = walker(0.013, 0.013)
    x, u = random_point(given)
    p = given.parameters(step=[[0.013], [0.0065]])
    names = given.names("path")
    first = given.path(x, u, p[0]).full().ravel()
    rows = [i for i, name in enumerate(names) if "cone" in name]
    force = given.motion.derivatives(x, u, p[1])[1].full().ravel()
    assert min(np.abs(first[rows]).max(), np.abs(force).max()) > 1
    # the same forces at both lengths: the row of the shorter interval is half as large
    again = given.motion.path(x, u, p[0], 0 * x[: given.system.nv], force).full().ravel()
    shorter = given.motion.path(x, u, p[1], 0 * x[: given.system.nv], force).full().ravel()
    np.testing.assert_allclose(shorter[rows], again[rows] / 2, rtol=1e-9)


def reached(step, lengths):
    ocp = swing([*lengths], len(lengths), step)
    x = np.array([0.1, 0.4, 0.0, 0.5])
    for p in ocp.parameters()[:-1]:
        x = ocp.dynamics(x, [1.0], p).full().ravel()
    return x


@pytest.mark.parametrize(
    ("step", "order"), [(mpc.SemiImplicitStep(), 1), (mpc.StepOptions(order=4), 4)]
)
def test_steps_of_unequal_lengths_converge_with_the_order_of_the_method(step, order):
    coarse = 0.02 * 1.2 ** np.arange(6)
    exact = reached(mpc.StepOptions(substeps=20), coarse)
    split = [np.repeat(coarse / n, n) for n in (2, 4)]
    errors_of = [np.linalg.norm(reached(step, lengths) - exact) for lengths in split]
    assert np.log2(errors_of[0] / errors_of[1]) == pytest.approx(order, abs=0.25)


def test_direct_collocation_has_the_lengths():
    ocp = swing([0.025, 0.05, 0.1], 3)
    collocated = mpc.direct_collocation(ocp, ocp.system)
    p = collocated.parameters(setpoint_q=[0.1, 0.1])
    guess = mpc.rollout(ocp, np.zeros(4), p)
    best = mpc.solve_ocp(
        collocated, np.zeros(4), p, mpc.collocation_guess(collocated, ocp.system, guess)
    )
    assert best.solved
    fine, x = mpc.StepOptions(substeps=20), best.x[0]
    for k, h in enumerate((0.025, 0.05, 0.1)):
        x = mpc.discrete_dynamics(ocp.system, h, fine)(x, best.u[k, :1], []).full().ravel()
        np.testing.assert_allclose(best.x[k + 1], x, atol=1e-4)  # 2 points: order 4


@pytest.mark.parametrize("period", [[0.1], [0.1, -0.1, 0.1], 0.0, [0.1, 0.1, np.inf]])
def test_lengths_that_are_none_are_refused(period):
    with pytest.raises(errors.ProblemError, match="positive number of seconds, or 3 of them"):
        swing(period, 3)


def test_other_lengths_than_positive_ones_are_refused():
    with pytest.raises(errors.ProblemError, match="expected positive lengths"):
        swing([0.1] * 3, 3).parameters(step=[[0.1], [0.0], [0.1]])
