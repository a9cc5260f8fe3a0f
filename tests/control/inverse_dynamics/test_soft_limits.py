"""Limits that give way at a price, and limits of positions that actuators can keep together."""

import mujoco
import numpy as np
import pytest
from full_problem import least_squares_within
from numpy.testing import assert_allclose
from support.loops_in_mujoco import ticks
from support.mechanisms_of_control import hard_rows, limited, without_shortfall
from support.refusals import refused
from test_joint_limits import ARM

import mbcasadi as mb
from mbcasadi.control import DistanceLimits, InverseDynamicsQP, JointLimits, PostureTask, SoftLimit
from mbcasadi.control.limits.usual_braking import RELIED_ON
from mbcasadi.description.status import Flag, Status
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant

SAME = 1e-6  # relative, of the two ways to solve a QP
UNBOUNDED = 1e29

# Twice as fast as the limit, a tick away from it: 1000 rad/s², which 60 N m do not give.
FAST = np.array([1.0, 0.0, 0.0]), np.array([4.0, 0.0, 0.0])
arm = pytest.fixture(scope="module")(lambda: mb.read_mjcf(ARM))


def law_of_arm(arm, soft=(), **options):
    tasks = [PostureTask(("shoulder", "elbow"), kp=400.0)]
    limits = JointLimits(velocity=2.0, braking=500.0)
    return InverseDynamicsQP(arm, tasks, joint_limits=limits, soft=soft, period=0.002, **options)


def priced(hard, state, prices):
    """Return the optimum (y, s) of the hard problem's rows with slack in some, by NumPy.

    Args:
        hard: controller without soft rows.
        state: q, v and what else `problem` takes.
        prices: by name of the row, (price, linear).
    """
    qp, scales = hard.problem(*state), hard.stages.scales
    if hard.joint_limits is not None:
        qp = hard_rows(hard, qp, *state[:2])
    n, m = len(qp.g), len(qp.row_names)
    soft = [i for i, name in enumerate(qp.row_names) if name in prices]
    root = np.linalg.cholesky(qp.H).T
    right = -np.linalg.solve(root.T, qp.g)
    slack = np.zeros((m, len(soft)))
    roots, rights = [np.hstack([root, np.zeros((n, len(soft)))])], [right]
    for j, i in enumerate(soft):
        price, linear = prices[qp.row_names[i]]
        unit = scales.task / scales.inequalities[i]
        c, slope = price * unit**2, linear * scales.task * unit
        slack[i, j] = 1.0
        row = np.zeros((1, n + len(soft)))
        row[0, n + j] = np.sqrt(c)
        roots.append(row)
        rights.append([-slope / np.sqrt(c)])
    upper, lower = qp.uba < UNBOUNDED, qp.lba > -UNBOUNDED
    none = np.zeros((len(soft), n))
    C = np.vstack(
        [
            np.hstack([qp.A_qp, -slack])[upper],
            np.hstack([-qp.A_qp, -slack])[lower],
            np.hstack([none, -np.eye(len(soft))]),
        ]
    )
    d = np.concatenate([qp.uba[upper], -qp.lba[lower], np.zeros(len(soft))])
    z, feasible = least_squares_in_rows(np.vstack(roots), np.concatenate(rights), C, d)
    assert feasible
    return z[:n], dict(zip([qp.row_names[i] for i in soft], z[n:], strict=True))


def least_squares_in_rows(root, right, C, d):
    """Return `argmin |root z - right|` subject to `C z <= d`; one unknown more is held at zero."""
    size = root.shape[1]
    held = np.eye(size + 1)[-1:]
    wide = np.hstack([root, np.zeros((len(root), 1))])
    z, feasible = least_squares_within(
        wide, right, held, np.zeros(1), np.hstack([C, np.zeros((len(C), 1))]), d
    )
    return z[:size], feasible


def states_of_arm(count):
    rng = np.random.default_rng(2)
    yield FAST
    for _ in range(count):
        yield rng.uniform(-1, 1, 3) * [1.3, 2.2, 0], rng.uniform(-6, 6, 3)


@pytest.mark.parametrize("linear", [0.0, 30.0])
@pytest.mark.every(2)
def test_a_soft_problem_has_the_optimum_of_the_problem_with_its_slack_written_out(arm, linear):
    hard = law_of_arm(arm)
    soft = law_of_arm(arm, [SoftLimit("joints", price=50.0, linear=linear)])
    prices = {name: (50.0, linear) for name in hard.row_names if name.startswith("joint")}
    contradictory = relaxed = 0
    for q, v in states_of_arm(40):
        contradictory += Flag.UNVIABLE in hard.solve(q, v).flags
        solution = soft.solve(q, v)
        assert solution.solved, solution.explain()
        p, slack = priced(hard, (q, v), prices)
        assert_allclose(solution.p, p, rtol=0, atol=SAME * np.abs(p).max())
        largest = max(slack.values())
        for name, amount in solution.relaxed.items():
            assert abs(amount) == pytest.approx(slack[name], abs=SAME * largest)
        for name in prices.keys() - solution.relaxed.keys():
            assert slack[name] <= 2e-3 * (1 + np.abs(solution.a).max())
        assert (Flag.RELAXED in solution.flags) == bool(solution.relaxed)
        relaxed += bool(solution.relaxed)
    assert contradictory >= 5
    assert contradictory <= relaxed < 40


def test_with_a_linear_price_a_limit_that_can_be_kept_is_kept_exactly(arm):
    hard = law_of_arm(arm)
    ref = hard.reference_at(arm.tree.q0)
    ref[hard.reference_slices["posture.q"]] = [1.0, -1.0]
    near = np.array([1.19, 0.0, 0.0]), np.array([0.3, 0.0, 0.0])
    exact = law_of_arm(arm, [SoftLimit("joints", linear=1e4)]).solve(*near, ref)
    assert_allclose(exact.u, hard.solve(*near, ref).u, rtol=0, atol=1e-6)
    assert not exact.relaxed


def test_what_was_relaxed_is_reported_in_the_rows_unit_and_sign(arm):
    law = law_of_arm(arm, [SoftLimit("joint 'shoulder': range")])
    hard, (q, v) = law_of_arm(arm), FAST
    assert Flag.UNVIABLE in hard.solve(q, v).flags
    for side in (1.0, -1.0):
        solution = law.solve(side * q, side * v)
        lower, upper = -500.0, (2.0 - 4.0) / 0.002  # of the acceleration; no less than braking
        beyond = side * solution.a[0] - max(upper, lower)
        assert solution.relaxed["joint 'shoulder': range"] == pytest.approx(side * beyond)
        assert beyond > 100.0
    names = law.controller.outputs[-1]
    assert names.name == "slack"
    assert names.components == ("joint 'shoulder': range",)
    assert names.units == ("rad/s²",)
    assert "joint 'shoulder': range is violated by" in law.solve(q, v).explain()


def test_prices_may_change_between_ticks(arm):
    tuned = law_of_arm(arm, [SoftLimit("joints", linear=1.0)], tunable=("prices",))
    assert [x.name for x in tuned.tuning] == ["joints.price", "joints.linear"]
    built = law_of_arm(arm, [SoftLimit("joints", price=2.0, linear=7.0)])
    tuning = {"joints.price": 2.0, "joints.linear": 7.0}
    for q, v in states_of_arm(5):
        ours, theirs = tuned.solve(q, v, tuning=tuning), built.solve(q, v)
        assert_allclose(ours.u, theirs.u, rtol=0, atol=1e-7)
        assert ours.relaxed == pytest.approx(theirs.relaxed, rel=1e-5)


@pytest.mark.parametrize("is_soft", [False, True])
def test_in_mujoco_an_arm_that_is_thrown_at_its_stops_is_controlled_on_all_ticks(arm, is_soft):
    """At 8 rad/s towards its stops, the shoulder needs more than its motor to stop in time."""
    law, plant = law_of_arm(arm, [SoftLimit("joints")] if is_soft else []), Plant(ARM)
    plant.reset(np.zeros(3), np.array([8.0, -8.0, 0.0]))
    run = ticks(law, plant, 500, law.reference_at(arm.tree.q0), steps=2)
    assert {int(out["status"][0]) for out in run} == {Status.SOLVED}
    assert np.abs(plant.q[:2]).max() < 0.01
    assert np.abs(plant.v[:2]).max() < 0.05


def test_soft_limits_of_nothing_or_of_what_an_actuator_gives_are_refused(arm):
    with pytest.raises(ProblemError, match="soft limit 'joint': no row has this name"):
        law_of_arm(arm, [SoftLimit("joint")])
    with pytest.raises(ProblemError, match="is what the actuator can give"):
        law_of_arm(arm, [SoftLimit("actuator '*': force range")])
    with pytest.raises(ProblemError, match="soft limit 'joints' has 2 prices"):
        law_of_arm(arm, [SoftLimit("joints"), SoftLimit("joints", price=2.0)])
    refused(ProblemError, "linear = -1", lambda: SoftLimit("joints", linear=-1.0))


H, LATE, HEAVY = 0.002, 1, 0.1  # s, ticks, share of the mass
EQUAL = 1e-6  # relative, of two ways to solve a QP

# What brakes the shoulder loads the elbow's motor, and the other way round.
TWO_LINKS = """
<mujoco><option gravity="0 0 0"/>
  <worldbody><body name="upper">
      <joint name="shoulder" axis="0 0 1" range="-100 100"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      <body name="lower" pos=".4 0 0">
        <joint name="elbow" axis="0 0 1" range="-130 130"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/></body></body></worldbody>
  <contact><exclude body1="upper" body2="lower"/></contact>
  <actuator><motor joint="shoulder" ctrlrange="-6 6"/><motor joint="elbow" ctrlrange="-3 3"/>
  </actuator></mujoco>
"""

# Two carts on one rail, each with a stop behind it.
CARTS = """
<mujoco><worldbody>
    <body name="left" pos="-.5 0 0"><joint name="left" type="slide" axis="1 0 0" range="-.4 2"/>
      <geom name="left" size=".1" mass="2"/></body>
    <body name="right" pos=".5 0 0"><joint name="right" type="slide" axis="1 0 0" range="-2 .4"/>
      <geom name="right" size=".1" mass="2"/></body></worldbody>
  <actuator><motor joint="left" ctrlrange="-20 20"/><motor joint="right" ctrlrange="-20 20"/>
  </actuator></mujoco>
"""
MARGIN, START = 0.02, 0.8  # m
links = pytest.fixture(scope="module")(lambda: mb.read_mjcf(TWO_LINKS))
carts = pytest.fixture(scope="module")(lambda: mb.read_mjcf(CARTS))


def test_usual_braking_of_all_joints_at_once_is_within_what_the_motors_give(links):
    """By MuJoCo's inertia: with any signs, and nothing left at the pose that needs most."""
    law = InverseDynamicsQP(links, [PostureTask()], joint_limits=JointLimits(), period=H)
    d = limited(law).braking / RELIED_ON
    model = mujoco.MjModel.from_xml_string(TWO_LINKS)
    data, largest = mujoco.MjData(model), 0.0
    alone = np.full(2, np.inf)
    for q, _ in links.scales.states:
        data.qpos[:] = np.array(q).ravel()
        mujoco.mj_forward(model, data)
        M = np.zeros((2, 2))
        mujoco.mj_fullM(model, data, M)
        for signs in ((1, 1), (1, -1)):
            largest = max(largest, np.max(np.abs(M @ (d * signs)) / [6, 3]))
        alone = np.minimum(alone, [6, 3] / np.diag(M))
    assert largest == pytest.approx(1.0, rel=1e-6)
    assert np.all(d < 0.9 * alone)
    assert np.all(d > 0.2 * alone)


@pytest.mark.long
@pytest.mark.parametrize("start", [(0.0, 0.0), (0.5, -1.0)])
@pytest.mark.every(2)
def test_weak_links_that_brake_together_stop_before_their_stops(links, start):
    """Heavier than the model, a tick late, thrown at both stops by what the posture wants."""
    law = InverseDynamicsQP(
        links, [PostureTask(kp=400.0)], joint_limits=JointLimits(), period=H, delay=LATE
    )
    for way in ((1, 1), (1, -1), (-1, 1)):
        ref = law.reference_at(np.array(start))
        ref[law.reference_slices["posture.q"]] = 3.0 * np.array(way)
        report = mb.validate(
            law, TWO_LINKS, 1.5, reference=ref, q0=start, perturb={"mass": HEAVY}, delay=LATE
        )
        recording = report.runs[0].recording
        beyond = np.max(np.abs(recording.q) - np.deg2rad([100, 130]))
        assert -0.02 < beyond < 1e-3
        assert not np.any(recording.status)
        assert not np.any(recording.flags & Flag.UNVIABLE)


def law_of_carts(carts, braking=2.0, **options):
    limits = DistanceLimits(braking, MARGIN)
    return InverseDynamicsQP(
        carts,
        [PostureTask(kp=400.0)],
        distance_limits=limits,
        joint_limits=JointLimits(),
        period=H,
        delay=LATE,
        **options,
    )


@pytest.mark.parametrize("speed", [1.0, 2.0])
@pytest.mark.every(2)
def test_carts_that_are_faster_than_stated_braking_stops_meet_at_the_margin(carts, speed):
    """2 m/s² do not stop 4 m/s within 0.8 m, and the motors give 20: what is needed is demanded."""
    law = law_of_carts(carts)
    ref = law.reference_at(np.zeros(2))
    ref[law.reference_slices["posture.q"]] = [1.0, -1.0]
    report = mb.validate(
        law, CARTS, 1.0, reference=ref, v0=[speed, -speed], perturb={"mass": HEAVY}, delay=LATE
    )
    recording = report.runs[0].recording
    gap = START + recording.q[:, 1] - recording.q[:, 0]
    assert MARGIN - 5e-4 < gap.min() < MARGIN + 5e-4
    assert not np.any(recording.status)
    assert not np.any(recording.flags & Flag.UNVIABLE)


def test_where_limits_cannot_be_kept_the_law_says_so_and_stays_solved(carts):
    """The left cart before its stop, a weak one behind it: no force keeps both limits."""
    law = law_of_carts(carts, force_limits=np.array([[-20.0, 20.0], [-1.0, 1.0]]))
    q, v = np.array([-0.36, -0.8]), np.array([-0.8, -1.9])  # gap 0.36 less margin, closing by 1.1
    solution = law.solve(q, v)
    assert solution.status == Status.SOLVED
    assert Flag.UNVIABLE in solution.flags
    rest = law.solve(np.zeros(2), np.zeros(2))
    assert Flag.UNVIABLE not in rest.flags


def test_a_shortfall_is_zero_where_the_rows_can_be_kept(links):
    """The optimum is that of the rows without it, by NumPy, however far the reference is away."""
    law = InverseDynamicsQP(
        links, [PostureTask(kp=400.0)], joint_limits=JointLimits(velocity=4.0), period=H
    )
    rng, checked, active = np.random.default_rng(3), 0, 0
    for _ in range(60):
        q, v = rng.uniform(-1, 1, 2) * [1.7, 2.2], rng.uniform(-2, 2, 2)
        ref = law.reference_at(q + rng.choice([0.1, 100.0]) * rng.standard_normal(2))
        solution = law.solve(q, v, ref)
        assert solution.status == Status.SOLVED
        qp = without_shortfall(law.problem(q, v, ref))
        root = np.linalg.cholesky(qp.H).T
        C, d = np.vstack([qp.A_qp, -qp.A_qp]), np.concatenate([qp.uba, -qp.lba])
        none = np.zeros((1, 3))
        none[0, 2] = 1.0  # an unknown more, held at zero
        wide = np.hstack([root, np.zeros((2, 1))]), -np.linalg.solve(root.T, qp.g)
        rows = np.hstack([C, np.zeros((len(C), 1))])
        y, feasible = least_squares_within(*wide, none, np.zeros(1), rows[d < 1e29], d[d < 1e29])
        if not feasible:
            continue
        checked += 1
        assert_allclose(solution.p, y[:2], rtol=0, atol=EQUAL * 6.0)
        active += bool(np.any(np.isclose(qp.A_qp @ y[:2], qp.uba)))
    assert checked > 30
    assert active > 5


def test_explain_says_of_a_fast_joint_at_its_stop_that_it_cannot_stop(links):
    law = InverseDynamicsQP(links, [PostureTask()], joint_limits=JointLimits(), period=H)
    stop = np.deg2rad(100)
    solution = law.solve([stop - 1e-3, 0.0], [8.0, 0.0])
    assert solution.status == Status.SOLVED
    assert Flag.UNVIABLE in solution.flags
    found = law.explain([stop - 1e-3, 0.0], [8.0, 0.0])
    asked, given = found.unviable["joint 'shoulder'"]
    assert asked == pytest.approx(8.0**2 / (1e-3 + np.hypot(1e-3, 8.0 * H)))  # steps of h² a
    assert 0 < given < 100.0
    assert "joint 'shoulder' cannot stop before its limit" in str(found)
    assert not law.explain([0.0, 0.0], [0.1, 0.0]).unviable
