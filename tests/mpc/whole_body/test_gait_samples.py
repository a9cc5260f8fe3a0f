"""Samples on the switches of a gait, and plans over the unequal intervals between them."""

import casadi as ca
import numpy as np
import pytest
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.gait import Walk
from mbcasadi.mpc.whole_body.gait_samples import SHORTEST, gait_samples

H, GROWING = 0.02, 0.02 * 1.1 ** np.arange(12)
ODD = mpc.trot(0.413, duty=0.57, start=0.131)  # no time of it is a multiple of the period
EVEN = mpc.trot(0.4, duty=0.6, start=0.1)
CLOSE = 1e-6  # s
GROWTH = mpc.WholeBodyOptions(growth=1.2)


def sampled(gait, lengths):
    t = ca.SX.sym("t")
    return ca.Function(
        "samples", [t], [ca.vertcat(*gait_samples(Walk(gait, gait.start, None), t, lengths))]
    )


def on(gait, t):
    return np.array(ca.DM(gait.on_ground(t))).ravel()


@pytest.mark.parametrize("gait", [ODD, EVEN, mpc.Gait(0.37, 0.5, (0.0, 0.02, 0.5, 0.52))])
def test_every_switch_is_a_sample_or_next_to_another_one(gait):
    samples, moved = sampled(gait, GROWING), 0
    for start in np.arange(0, 1, 0.0173):
        times = samples(start).full().ravel()
        lengths = np.diff(times) / GROWING
        assert lengths.min() >= SHORTEST - CLOSE
        assert times[-1] == pytest.approx(GROWING.sum(), abs=GROWING[-1])
        for a, b, h in zip(times[:-1], times[1:], GROWING, strict=True):
            # a switch inside is within a share of a nominal interval of its beginning
            late = start + a + SHORTEST * h + CLOSE
            assert np.all(on(gait, late) == on(gait, start + b - CLOSE)) or late > start + b
            moved += not np.all(on(gait, start + b - CLOSE) == on(gait, start + b + CLOSE))
    assert moved > 100


def test_times_that_are_multiples_of_the_period_leave_the_samples():
    samples = sampled(EVEN, np.full(12, H))
    for k in range(30):
        np.testing.assert_allclose(samples(k * H).full().ravel(), H * np.arange(13), atol=1e-12)


def test_samples_stay_while_the_horizon_slides():
    samples, kept = sampled(ODD, GROWING), []
    for start in np.arange(0.2, 0.21, 0.002):
        times = start + samples(start).full().ravel()
        switches = [t for t in times if not np.all(on(ODD, t - CLOSE) == on(ODD, t + CLOSE))]
        kept.append([t for t in switches if 0.24 < t < 0.5])
    assert len(kept[0]) > 1
    np.testing.assert_allclose(kept, [kept[0]] * len(kept), atol=1e-9)


@pytest.fixture(scope="module")
def grown():
    system = mb.read_mjcf(small_walker(damping=0.0))
    q0, feet = standing_pose(system), [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    return mpc.whole_body_mpc(system, 5, H, feet, gait=ODD, q0=q0, options=GROWTH), q0


def test_a_law_follows_a_plan_over_unequal_intervals(grown):
    whole, q0 = grown
    ocp, rng, start = whole.plan.ocp, np.random.default_rng(3), 0.31
    x = np.concatenate([q0, 0.2 * rng.normal(size=18)])
    acting = (whole.u0, 0.0, start - H, whole.z0)
    P = np.array(whole.references(q0, x[19:], [0.1, 0, 0], np.zeros(18), *acting)[2]).reshape(6, -1)
    ends = np.cumsum([0, *(slot.size for slot in ocp.slots)])
    first = {slot.name: end for slot, end in zip(ocp.slots, ends, strict=False)}
    lengths = P[:5, first["step"]]
    times = np.concatenate([[0.0], np.cumsum(lengths)])
    np.testing.assert_allclose(times, sampled(ODD, ocp.lengths)(start).full().ravel(), atol=1e-12)
    assert np.ptp(lengths / ocp.lengths) > 0.1
    rows = next(slot.components for slot in ocp.slots if slot.name == "mask")
    for k in range(5):
        feet_on = on(ODD, start + (times[k] + times[k + 1]) / 2)
        mask = dict(zip(rows, P[k, first["mask"] :], strict=False))
        own = [{mask[row] for row in rows if f".{leg}." in row} for leg in LEGS]
        assert own == [{float(yes)} for yes in feet_on]
    U, X = rng.normal(size=(5, 12)), [x]
    for k in range(5):
        X.append(np.array(ocp.dynamics(X[-1], U[k], P[k])).ravel())
    plan = np.concatenate([np.ravel(X[:-1]), U.ravel(), lengths, np.zeros(18)])
    place = whole.law.reference_slices
    posture = next(task.name for task in whole.law.tasks if f"{task.name}.a" in place)
    for k in range(5):
        for age, x, near in ((times[k], X[k], 1e-9), (times[k + 1] - 1e-7, X[k + 1], 1e-3)):
            ref, q = np.array(whole.follow(plan, age, start + age)[0]).ravel(), x[7:19]
            q = q - lengths[k] / 2 * x[25:37]  # positions are half an interval ahead of rates
            np.testing.assert_allclose(ref[place[f"{posture}.q"]], q, atol=near)
            np.testing.assert_allclose(ref[place[f"{posture}.v"]], x[25:37], atol=near)


def test_a_plan_over_unequal_intervals_is_an_output_with_its_lengths(grown):
    whole, q0 = grown
    ref = whole.references(
        q0, np.zeros(18), [0.1, 0, 0], np.zeros(18), whole.u0, 0.0, 0.3, whole.z0
    )[2]
    z = whole.plan.controller.z0
    for _ in range(2):
        out = whole.plan.function(q=q0, v=np.zeros(18), ref=ref, z=z)
        z = out["z_next"]
        assert int(out["status"]) == 0
    plan, P = np.array(out["plan"]).ravel(), np.array(ref).reshape(6, -1)
    x, u, lengths = (
        plan[: 5 * 37].reshape(5, 37),
        plan[5 * 37 : 5 * 49].reshape(5, 12),
        plan[5 * 49 : 5 * 50],
    )
    assert plan.size == whole.u0.size
    np.testing.assert_allclose(x[0], [*q0, *np.zeros(18)], atol=1e-9)
    X, U = whole.plan.trajectory(np.array(z).ravel())
    np.testing.assert_allclose(x[1:], X[1:5], atol=1e-12)
    np.testing.assert_allclose(u[1:], U[1:], atol=1e-12)
    steps = next(i for i, n in enumerate(_components(whole.plan.ocp)) if n == "step")
    np.testing.assert_allclose(lengths, P[:5, steps])


def _components(ocp):
    return [slot.name for slot in ocp.slots for _ in slot.components]


def test_intervals_that_shrink_are_refused():
    with pytest.raises(ProblemError, match=r"growth = 0.5; expected a factor of at least 1"):
        mpc.WholeBodyOptions(growth=0.5)
