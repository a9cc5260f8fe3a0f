"""Soft limits: the optimum of the problem with slack written out, what is reported, and the C."""

import numpy as np
import pytest
from full_problem import least_squares_within
from mechanisms import feet, hard_rows, stand, system_of
from test_joint_limits import ARM

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask, SoftLimit
from mbcasadi.description.status import Flag, Status
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant

SAME = 1e-6  # relative, of the two ways to solve a QP
UNBOUNDED = 1e29

# Twice as fast as the limit, a tick away from it: 1000 rad/s², which 60 N m do not give.
FAST = np.array([1.0, 0.0, 0.0]), np.array([4.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def arm():
    return mb.read_mjcf(ARM)


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
        np.testing.assert_allclose(solution.p, p, rtol=0, atol=SAME * np.abs(p).max())
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
    np.testing.assert_allclose(exact.u, hard.solve(*near, ref).u, rtol=0, atol=1e-6)
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
        np.testing.assert_allclose(ours.u, theirs.u, rtol=0, atol=1e-7)
        assert ours.relaxed == pytest.approx(theirs.relaxed, rel=1e-5)


def test_the_exported_law_gives_way_as_the_function_does(tmp_path):
    system = system_of("quadruped")
    tasks = [FrameTask("trunk", kind="body", weight=100.0, name="base"), PostureTask(kp=50.0)]
    soft = [SoftLimit("normal forces"), SoftLimit("joints", linear=1.0)]
    limits = JointLimits(velocity=1.0, braking=300.0)
    contacts = feet(min_force=30.0, max_force=45.0)
    law = InverseDynamicsQP(system, tasks, contacts, joint_limits=limits, soft=soft, name="soft")
    exported = export_c(law, tmp_path / "soft").load()
    rng, seen = np.random.default_rng(4), set()
    for k in range(60):
        q, v = stand(system, rng, spread=0.05, speed=0.8, key="stand")
        v[0] = np.nan if k == 7 else v[0]
        ref = law.reference_at(system.tree.keyframes["stand"])
        ours, theirs = (
            [np.array(out).ravel() for out in call(q, v, ref, np.ones(4), law.z0)]
            for call in (law.function, exported)
        )
        assert ours[2] == theirs[2]
        assert ours[3] == theirs[3]
        np.testing.assert_array_equal(ours[5], theirs[5])
        atol = 1e-5 * np.abs(ours[6]).max() + 1e-9 * 45.0  # differences from bounds of 45 N
        np.testing.assert_allclose(theirs[6], ours[6], rtol=0, atol=atol)
        seen.add((int(ours[2][0]), int(ours[3][0]) & Flag.RELAXED))
        if ours[2] == Status.BAD_INPUT:
            assert not np.any(np.concatenate(theirs[5:]))
    assert (Status.SOLVED, Flag.RELAXED) in seen
    assert (Status.BAD_INPUT, 0) in seen
    header = (tmp_path / "soft" / "soft.h").read_text()
    assert "SOFT_SLACK_CONTACT__FL___NORMAL_FORCE = 0" in header


@pytest.mark.parametrize("is_soft", [False, True])
def test_in_mujoco_an_arm_that_is_thrown_at_its_stops_is_controlled_on_all_ticks(arm, is_soft):
    """At 8 rad/s towards its stops, the shoulder needs more than its motor to stop in time."""
    law = law_of_arm(arm, [SoftLimit("joints")] if is_soft else [])
    plant = Plant(ARM)
    plant.reset(np.zeros(3), np.array([8.0, -8.0, 0.0]))
    ref, z, statuses = law.reference_at(arm.tree.q0), law.z0, []
    for _ in range(500):
        u, z, status, *_ = (
            np.array(x).ravel() for x in law.function(plant.q, plant.v, ref, np.zeros(0), z)
        )
        statuses.append(int(status[0]))
        plant.step(u, 2)
    assert set(statuses) == {Status.SOLVED}
    assert np.abs(plant.q[:2]).max() < 0.01
    assert np.abs(plant.v[:2]).max() < 0.05


def test_soft_limits_of_nothing_or_of_what_an_actuator_gives_are_refused(arm):
    with pytest.raises(ProblemError, match="soft limit 'joint': no row has this name"):
        law_of_arm(arm, [SoftLimit("joint")])
    with pytest.raises(ProblemError, match="is what the actuator can give"):
        law_of_arm(arm, [SoftLimit("actuator '*': force range")])
    with pytest.raises(ProblemError, match="soft limit 'joints' has 2 prices"):
        law_of_arm(arm, [SoftLimit("joints"), SoftLimit("joints", price=2.0)])
    with pytest.raises(ProblemError, match="linear = -1"):
        SoftLimit("joints", linear=-1.0)
