"""A plan of the whole robot and the law that follows it: what they are made of."""

import numpy as np
import pytest
from support.mpc_mechanisms import sliding_mass
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.codegen.two_rates.interface import interface_of
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError

N, H = 5, 0.02
FORCE = 0.5 * np.cos(np.arange(18))  # a disturbance, N, N m
STILL = np.zeros(18)
GAIT = mpc.trot(0.4, duty=0.6, start=0.1)


def robot(scale=1.0, damping=0.05, further=(), **options):
    """Return MPC of the small walker, lengths `scale` times as large, times as its root."""
    system = mb.read_mjcf(small_walker(scale, damping))
    q0, root = standing_pose(system, scale), scale**0.5
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    gait = mpc.trot(0.4 * root, duty=0.6, start=0.1 * root)
    parts = [*feet, *further]
    return mpc.whole_body_mpc(system, N, H * root, parts, gait=gait, q0=q0, **options), q0


@pytest.fixture(scope="module")
def walker():
    return robot(damping=0.0)


@pytest.fixture(scope="module")
def rolled_out(walker):
    """Return a plan that is a motion under random controls and a force, its states and controls."""
    (whole, q0), rng = walker, np.random.default_rng(3)
    ocp = whole.plan.ocp
    x = np.concatenate([q0, 0.2 * rng.normal(size=18)])
    U = whole.u0[-12 * N - 18 : -18].reshape(N, 12) + rng.normal(size=(N, 12))
    acting = (whole.u0, 0.0, 0.34, whole.z0)
    P = np.array(whole.references(q0, x[19:], [0.1, 0, 0], FORCE, *acting)[2])
    P, X = P.reshape(N + 1, -1), [x]
    for k in range(N):
        X.append(np.array(ocp.dynamics(X[-1], U[k], P[k])).ravel())
    return np.concatenate([np.ravel(X[:-1]), U.ravel(), FORCE]), np.array(X), U


def followed(whole, plan, age):
    """Return the slices of the law's reference at an age of a plan that began at 0.34 + H."""
    ref, _ = whole.follow(plan, age, 0.34 + H + age)
    return {name: ref.full().ravel()[place] for name, place in whole.law.reference_slices.items()}


def at_one_time(whole, x, span=H):
    """Return q and v of a plan's state: its positions are half an interval ahead of its rates."""
    q, v = x[:19], x[19:37]
    return np.array(whole.law.system.integrate(q, -span / 2 * v)).ravel(), v


def accelerations(whole, ref, q):
    """Return (18,) the accelerations that the law is asked for at a pose."""
    R = np.array(whole.law.system.frame("trunk", "body").pose(q)[1])
    turns = R.T @ ref["trunk.angular_acceleration"]
    return np.concatenate([ref["trunk.acceleration"], turns, ref["posture.a"]])


@pytest.mark.parametrize("k", range(N))
def test_a_law_that_follows_is_asked_for_the_states_of_the_plan(walker, rolled_out, k):
    (whole, _), (plan, X, _) = walker, rolled_out
    system = whole.law.system
    for age, x in ((k * H, X[k]), ((k + 1 - 1e-5) * H, X[k + 1])):
        ref = followed(whole, plan, age)
        near = 1e-9 if age == k * H else 1e-3
        q, v = at_one_time(whole, x)
        twist = np.array(system.frame("trunk", "body").velocity(q, v)).ravel()
        np.testing.assert_allclose(ref["posture.q"], q[7:], atol=near)
        np.testing.assert_allclose(ref["posture.v"], v[6:], atol=near)
        np.testing.assert_allclose(ref["trunk.position"], q[:3], atol=near)
        np.testing.assert_allclose(ref["trunk.velocity"], twist[:3], atol=near)
        np.testing.assert_allclose(ref["trunk.angular_velocity"], twist[3:], atol=near)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_positions_rates_and_accelerations_that_a_law_is_asked_for_are_one_motion(
    walker, rolled_out, share
):
    """Rates are the slopes of positions, accelerations those of rates."""
    (whole, _), (plan, *_), step = walker, rolled_out, 1e-3 * H
    for k in range(N):
        before, now, after = (
            followed(whole, plan, (k + share) * H + side * step) for side in (-1, 0, 1)
        )
        for place, rate in (
            ("posture.q", "posture.v"),
            ("trunk.position", "trunk.velocity"),
            ("posture.v", "posture.a"),
            ("trunk.velocity", "trunk.acceleration"),
        ):
            slope = (after[place] - before[place]) / (2 * step)
            np.testing.assert_allclose(slope, now[rate], rtol=1e-7, atol=1e-7)
        assert np.abs(H * now["posture.a"]).max() > 0.1


def test_its_accelerations_and_forces_are_those_of_newton_and_euler(walker, rolled_out):
    (whole, _), (plan, X, U) = walker, rolled_out
    system = whole.law.system
    for k in range(N):
        ref, (q, v) = followed(whole, plan, k * H), (X[k, :19], X[k, 19:])
        a = accelerations(whole, ref, at_one_time(whole, X[k])[0])
        asked = np.array(mb.inverse_dynamics(system)(q, v, a)).ravel()
        given = np.array(system.actuation(q)).reshape(18, 12) @ U[k] + FORCE
        for foot, (n, t1, t2) in zip(LEGS, ref["force"].reshape(4, 3), strict=True):
            J = np.array(system.frame(foot).jacobian(q))[:3]
            given += J.T @ [t1, t2, n]
        np.testing.assert_allclose(asked, given, atol=1e-6 * np.abs(asked).max())


def test_behind_its_end_a_plan_is_a_pose_that_is_held(walker, rolled_out):
    (whole, _), (plan, X, _) = walker, rolled_out
    ref = followed(whole, plan, (N + 2) * H)
    np.testing.assert_allclose(ref["posture.q"], X[N - 1, 7:19], atol=1e-12)
    for name in ("posture.v", "posture.a", "trunk.velocity", "trunk.acceleration"):
        np.testing.assert_allclose(ref[name], 0.0, atol=1e-12)


def test_a_state_is_predicted_to_the_moment_at_which_a_plan_acts(walker, rolled_out):
    """On the plan it is the plan's next state; feet that stand do not move, whatever it says."""
    (whole, _), (plan, X, _) = walker, rolled_out
    t, system = 0.34 + H, whole.law.system
    q, v = at_one_time(whole, X[0])
    asked = (q, v, [0, 0, 0], FORCE, plan, 0.0, t, whole.z0)
    first = np.concatenate([np.array(x).ravel() for x in whole.references(*asked)[:2]])
    np.testing.assert_allclose(first[:19], X[1, :19], atol=1e-8)
    np.testing.assert_allclose(first[19:], X[1, 19:], atol=1e-6)
    # where the law's accelerations lead, whose rates are those in the middle on the mean
    a = accelerations(whole, followed(whole, plan, 0.0), q)
    led = np.array(system.integrate(q, H * v + H**2 / 2 * a)).ravel()
    np.testing.assert_allclose(at_one_time(whole, first)[0], led, atol=1e-4)
    assert np.abs(H**2 / 2 * a).max() > 1e-2
    rng = np.random.default_rng(4)
    q, v = X[0, :19], rng.normal(size=18)
    after = [
        np.array(x).ravel()
        for x in whole.references(q, v, [0, 0, 0], FORCE, plan, 0.0, t, whole.z0)[:2]
    ]
    on = np.array(GAIT.on_ground(t + H / 2)).ravel()
    speeds = [
        np.linalg.norm(np.array(whole.law.system.frame(foot).velocity(q, after[1]))[:3])
        for foot in LEGS
    ]
    heights = [whole.law.system.frame(foot).pose(q)[0].full()[2, 0] for foot in LEGS]
    pulled = 0.3 * np.abs(np.array(heights) - 0.015).max() / H
    assert all(speed < 0.15 + pulled for speed, stands in zip(speeds, on, strict=True) if stands)
    assert all(speed > 0.3 for speed, stands in zip(speeds, on, strict=True) if not stands)


def test_a_report_sees_positions_and_rates_of_a_plan_at_one_time(walker):
    (whole, q0), v = walker, 0.1 * np.arange(18) - 1
    ref = whole.references(q0, v, [0, 0, 0], STILL, whole.u0, 0.0, 0.3, whole.z0)[2]
    known = {"q": q0, "v": v, "ref": ref, "z": whole.plan.controller.z0}
    out = whole.plan.function(**known)
    known |= {"z_next": out["z_next"], "u": out["u"]}
    prediction = whole.plan.controller.prediction
    seen = prediction(*(known[name] for name in prediction.name_in()))[0].full()
    planned = np.array(out["plan"]).ravel()[: 37 * N].reshape(N, 37)
    for x, y in zip(planned, seen.T, strict=False):
        np.testing.assert_allclose(np.concatenate(at_one_time(whole, x)), y, atol=1e-12)


@pytest.mark.long
def test_the_default_cost_has_no_unit_of_length():
    """A robot twice as large, times as the root, plans torques sixteen times as large."""
    plans, velocity = [], np.array([0.2, 0.1, -0.1])
    for scale in (1.0, 2.0):
        whole, q0 = robot(scale)
        root = scale**0.5
        v = np.zeros(18)
        v[:3] = velocity * root
        acting = (whole.u0, 0.0, 0.3 * root, whole.z0)
        _, _, ref, _ = whole.references(q0, v, [0, 0, 0], STILL, *acting)
        z = whole.plan.controller.z0
        for _ in range(3):
            sol = whole.plan.function(q=q0, v=v, ref=ref, z=z)
            z = sol["z_next"]
        assert int(sol["status"]) == 0
        plans.append(np.array(sol["u"]).ravel() / scale**4)
    np.testing.assert_allclose(plans[1], plans[0], rtol=1e-4, atol=1e-4 * np.abs(plans[0]).max())


def test_what_has_no_whole_body_mpc_is_refused(walker):
    system = walker[0].law.system.at()
    q0 = standing_pose(system)
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    upside_down = np.concatenate([q0[:3], [0.0, 1.0, 0.0, 0.0], q0[7:]])
    four_bar = mb.read_mjcf(models.path("four_bar"))
    free = {"period": 0.003, "force_weight": 1e-3}
    cases = [
        ("free joint", four_bar, feet, {}),
        ("free joint", sliding_mass(), feet, {}),
        ("no contacts", system, [], {}),
        ("2 offsets", system, feet, {"gait": mpc.Gait(0.4, 0.6, (0.0, 0.5))}),
        (
            "not a multiple",
            system,
            feet,
            {"law": InverseDynamicsQP(system, [PostureTask()], feet, **free)},
        ),
        ("over its feet", system, feet, {"q0": upside_down}),
    ]
    for message, mechanism, parts, options in cases:
        with pytest.raises(ProblemError, match=message):
            mpc.whole_body_mpc(
                mechanism, N, H, parts, **({"q0": q0} if mechanism is system else {}) | options
            )
    other = mb.Contact("FL", friction=0.6)
    law = InverseDynamicsQP(system, [PostureTask()], [other], period=0.002, force_weight=1e-3)
    with pytest.raises(ProblemError, match="contacts"):
        mpc.whole_body_mpc(system, N, H, feet, q0=q0, law=law)


@pytest.fixture(scope="module")
def limited():
    """Return MPC with limited and weighted changes of controls, tunable numbers, and its pose."""
    further = [mpc.StageBounds(du=[[-0.4, 0.4]] * 12), mpc.Cost(S=0.01)]
    options = mpc.WholeBodyOptions(tunable=("weights", "friction"), standing=mpc.Standing())
    return robot(further=further, options=options)


def test_controls_change_within_their_limits_from_plan_to_plan(limited):
    whole, q0 = limited
    nx, v = whole.plan.ocp.nx, np.zeros(18)
    assert nx == 19 + 18 + 12
    assert len(whole.plan.ocp.system.actuators) == 12
    v[:3] = 0.5, 0.2, -0.3
    z, plan, last = whole.plan.controller.z0, whole.u0, None
    z_refs, tuning = whole.z0, whole.plan.controller.default_tuning
    for k in range(3):
        first_q, first_v, ref, z_refs = whole.references(
            q0, v, [0.3, 0, 0], STILL, plan, 0.0, 0.5 + k * H, z_refs
        )
        sol = whole.plan.function(q=first_q, v=first_v, ref=ref, tuning=tuning, z=z)
        assert int(sol["status"]) == 0
        z, plan = sol["z_next"], sol["plan"].full().ravel()
        U = plan[N * nx : N * (nx + 12)].reshape(N, 12)
        if last is not None:
            assert np.abs(U[0] - last).max() <= 0.4 + 1e-6
        assert np.abs(np.diff(U, axis=0)).max() <= 0.4 + 1e-6
        last = U[0]
    assert np.abs(np.diff(U, axis=0)).max() > 0.39
    given = followed_at(whole, plan, 0.5 + 2 * H)
    np.testing.assert_allclose(given["posture.q"], at_one_time(whole, plan)[0][7:], atol=1e-9)
    begin, end = plan[-2:]
    assert 0.5 <= begin < end


def followed_at(whole, plan, t):
    """Return the slices of the law's reference at the first sample of a plan, at t + H."""
    ref, _ = whole.follow(plan, 0.0, t + H)
    return {name: ref.full().ravel()[place] for name, place in whole.law.reference_slices.items()}


def test_plan_and_tick_are_tuned_by_inputs_of_their_own(limited):
    whole, _ = limited
    names = [entry.name for entry in whole.plan.controller.tuning]
    assert {"feet.weight.z", "FL.friction", "Q.q.FL_hip"} <= {*names}
    ports = interface_of(whole, None, None)
    of_plan, of_tick = (
        {port.name: port for port in side} for side in (ports.plan_inputs, ports.tick_inputs)
    )
    assert of_plan["tuning"].size == len(names)
    assert of_tick["tuning"].size == len(whole.law.controller.tuning)
    assert of_tick["tuning"].size != of_plan["tuning"].size
