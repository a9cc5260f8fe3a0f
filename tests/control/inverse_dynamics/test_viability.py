"""Limits of positions that actuators can keep together, and what is said where they cannot."""

import mujoco
import numpy as np
import pytest
from full_problem import least_squares_within
from mechanisms import limited, without_shortfall

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import DistanceLimits, InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.control.limits.usual_braking import RELIED_ON
from mbcasadi.description.status import Flag, Status

H, LATE, HEAVY = 0.002, 1, 0.1  # s, ticks, share of the mass
SAME = 1e-6  # relative, of two ways to solve a QP

# What brakes the shoulder loads the elbow's motor, and the other way round.
TWO_LINKS = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 0 1" range="-100 100"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      <body name="lower" pos=".4 0 0">
        <joint name="elbow" axis="0 0 1" range="-130 130"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="upper" body2="lower"/></contact>
  <actuator>
    <motor joint="shoulder" ctrlrange="-6 6"/><motor joint="elbow" ctrlrange="-3 3"/>
  </actuator>
</mujoco>
"""

# Two carts on one rail, each with a stop behind it.
CARTS = """
<mujoco>
  <worldbody>
    <body name="left" pos="-.5 0 0"><joint name="left" type="slide" axis="1 0 0" range="-.4 2"/>
      <geom name="left" size=".1" mass="2"/></body>
    <body name="right" pos=".5 0 0"><joint name="right" type="slide" axis="1 0 0" range="-2 .4"/>
      <geom name="right" size=".1" mass="2"/></body>
  </worldbody>
  <actuator>
    <motor joint="left" ctrlrange="-20 20"/><motor joint="right" ctrlrange="-20 20"/>
  </actuator>
</mujoco>
"""
MARGIN, START = 0.02, 0.8  # m


@pytest.fixture(scope="module")
def links():
    return mb.read_mjcf(TWO_LINKS)


@pytest.fixture(scope="module")
def carts():
    return mb.read_mjcf(CARTS)


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


@pytest.mark.parametrize("start", [(0.0, 0.0), (0.5, -1.0)])
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
def test_carts_that_are_faster_than_stated_braking_stops_meet_at_the_margin(carts, speed):
    """2 m/s² do not stop 4 m/s within 0.8 m, and the motors give 20: what is needed is demanded."""
    law = law_of_carts(carts)
    ref = law.reference_at(np.zeros(2))
    ref[law.reference_slices["posture.q"]] = [1.0, -1.0]
    report = mb.validate(
        law,
        CARTS,
        1.0,
        reference=ref,
        v0=[speed, -speed],
        perturb={"mass": HEAVY},
        delay=LATE,
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
        np.testing.assert_allclose(solution.p, y[:2], rtol=0, atol=SAME * 6.0)
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


def test_the_exported_law_is_the_function_where_limits_are_kept_and_lost(carts, tmp_path):
    law = law_of_carts(carts, name="carts")
    exported = export_c(law, tmp_path / "carts").load()
    rng, flagged, z = np.random.default_rng(4), 0, law.z0
    assert sum(name.startswith("planned.") for name in law.memory_names) == 2 * LATE
    for _ in range(60):
        q, v = rng.uniform(-0.4, 0.4, 2), 3 * rng.standard_normal(2)
        inputs = {"q": q, "v": v, "ref": law.reference_at(q), "mask": np.zeros(0), "z": z}
        ours, theirs = law.function(**inputs), exported(**inputs)
        for name in ("u", "status", "flags", "z_next"):
            np.testing.assert_allclose(
                np.array(theirs[name]), np.array(ours[name]), rtol=1e-7, atol=1e-7 * 20
            )
        z = np.array(ours["z_next"]).ravel()
        flagged += bool(int(ours["flags"]) & Flag.UNVIABLE)
    assert 5 < flagged < 55
