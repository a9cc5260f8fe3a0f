"""The benchmark of the control tick poses the problems that it says."""

import os
from dataclasses import replace
from unittest.mock import MagicMock

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from bench import robots, tick, tick_cases, tick_full_form, tick_levels, tick_peers, tick_robots
from bench import tick_tsid as tsid
from bench.tick_cases import QUADRUPED, Foot, TickCase
from mbcasadi.errors import SolverError
from mbcasadi.qp.solver import controller_fun

TICKS = 40
# One step of 1 ms along a velocity that keeps the feet: the error is of second order.
DRIFT = 1e-5
SOLVERS_AGREE = 1e-7
ROUNDING = 1e-9
SAME_TORQUES = 1e-7  # N m, of 20
SERVO = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 1">
      <freejoint/>
      <geom size="0.1" mass="3"/>
      <body name="sole" pos="0 0 -1">
        <joint name="hip" axis="0 1 0" damping="2" frictionloss="0.3" actuatorfrcrange="-7 9"/>
        <geom size="0.1" mass="1"/>
      </body>
    </body>
  </worldbody>
  <actuator><position joint="hip" kp="500" ctrlrange="-0.2 0.2"/></actuator>
  <keyframe><key qpos="0 0 1 1 0 0 0 0"/></keyframe>
</mujoco>
"""

ACTIVE_FORCE = 30.0  # N, of a foot, which some foot would not have by itself


@pytest.fixture(scope="module")
def record():
    return QUADRUPED.sway(TICKS)


@pytest.mark.long
def test_ticks_with_levels_are_timed_beside_those_with_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(tick_levels, "TICKS", TICKS)
    monkeypatch.setattr(tick_levels, "REPEATS", 1)
    monkeypatch.setattr(tick_levels, "PARTS", {"first": slice(0, 20), "last": slice(20, TICKS)})
    rows = tick_levels.rows_of_levels(QUADRUPED, tmp_path)
    assert [row["model"] for row in rows] == [QUADRUPED.name] * 2
    assert all(0 < row["peer_time"] < np.inf and 0 < row["ours"] < np.inf for row in rows)


def test_the_trunk_sways_and_the_feet_stay(record):
    model = QUADRUPED.spec().compile()
    data = mujoco.MjData(model)
    places = []
    for q in record[0]:
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        places.append([data.site(foot).xpos.copy() for foot in QUADRUPED.sites])
    assert np.max(np.ptp(record[0][:, :3], axis=0)) > 1e-3
    assert np.max(np.ptp(places, axis=0)) < DRIFT


@pytest.mark.parametrize("least", [QUADRUPED.least_force, ACTIVE_FORCE])
def test_the_usual_form_has_the_controllers_torques(record, least):
    pytest.importorskip("quadprog", reason="quadprog is not installed (extra: test)")
    controller = replace(QUADRUPED, least_force=least).controller()
    q, v = (values[::20] for values in record)
    cone = (tick_cases.FRICTION, least)
    problems = tick_full_form.full_form(controller, QUADRUPED.sites, cone, (q, v), q[0])
    ref = controller.reference_at(q[0])
    (quadprog,) = tick_peers.solvers(problems, only=("quadprog",))
    assert len(quadprog.solutions) == len(problems)
    normal = np.concatenate([x[-10::3] for x in quadprog.solutions])  # of four feet
    assert (normal.min() < 1.001 * least) == (least == ACTIVE_FORCE)
    for problem, x, a, b in zip(problems, quadprog.solutions, q, v, strict=True):
        u, _, status, *_ = controller.function(a, b, ref, 1, controller.z0)
        assert float(status) == 0
        assert np.max(np.abs(np.array(u).ravel())) > 1.0
        assert np.max(np.abs(problem.torques(x) - np.array(u).ravel())) < tick.SAME_TORQUES


def test_the_solver_alone_solves_the_recorded_problems(record, tmp_path):
    pytest.importorskip("quadprog", reason="quadprog is not installed (extra: test)")
    controller = QUADRUPED.controller()
    stages = controller.controller.stages
    inputs = {
        "q": record[0][:5],
        "v": record[1][:5],
        "ref": np.array(controller.reference_at(record[0][0])).ravel(),
        "mask": np.ones(4),
    }
    A, lower, upper = tick.record_problems(stages, controller.z0, inputs)
    law = mb.export_c(tick.solver_only(stages), tmp_path / "out").load()
    short = tick_peers.from_least_distance(A, lower, upper)
    (peer,) = tick_peers.solvers(short, only=("quadprog",))
    for k in range(len(A)):
        x, _, status = law(A[k], lower[k], upper[k], 0)
        assert float(status) == 0
        size = max(1.0, float(np.max(np.abs(np.array(x)))))
        assert np.max(np.abs(np.array(x).ravel() - peer.solutions[k])) < SOLVERS_AGREE * size


def test_servos_become_motors_of_their_joints_range_and_losses_are_left_out(tmp_path):
    path = tmp_path / "servo.xml"
    path.write_text(SERVO)
    case = TickCase("hopper", path, "trunk", (Foot("sole", (0.1, 0.0, -0.2), (0.08, 0.03)),))
    model = case.spec().compile()
    assert model.actuator_ctrlrange.tolist() == [[-7, 9]]
    data = mujoco.MjData(model)
    data.ctrl[:], data.qvel[6], data.qpos[7] = 3.0, 5.0, 0.1
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator[6] == 3.0
    assert not np.any(data.qfrc_passive)
    assert not np.any(model.dof_frictionloss)
    places = np.array([model.site(site).pos for site in case.sites])
    assert np.allclose(places.mean(axis=0), [0.1, 0.0, -0.2], atol=ROUNDING)
    assert np.allclose(np.ptp(places, axis=0), [0.16, 0.06, 0.0], atol=ROUNDING)


def test_robots_of_others_come_from_the_folder_that_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv(robots.FOLDER, raising=False)
    assert tick_cases.robots() == []
    (tmp_path / robots.G1).touch()
    monkeypatch.setenv(robots.FOLDER, str(tmp_path))
    assert [case.name for case in tick_cases.robots()] == ["G1"]


@pytest.mark.parametrize("name", ["torque, N m", "motion", "unsolved", "fails"])
def test_times_of_another_solution_are_not_compared(monkeypatch, tmp_path, name):
    gaps = {"torque, N m": 0.0, "motion": 0.0, "unsolved": 0.0}
    case, states = MagicMock(), (np.zeros((2, 19)), np.zeros((2, 18)))
    tick_of = tick_robots.Tick(case, case.controller(), None, states, (0.0, 0.0))
    program = tsid.Program("TSID", tmp_path / "program")
    monkeypatch.setattr(tsid, "differences", lambda *_: gaps)
    assert tick_robots.compared_program(tick_of, program) == (program, gaps)
    gaps[name] = np.nan
    if name == "fails":
        monkeypatch.setattr(tsid, "differences", MagicMock(side_effect=SolverError("it failed")))
    compared, _ = tick_robots.compared_program(tick_of, program)
    assert compared.path is None
    words = "it failed" if name == "fails" else f"not compared: {name} differs by nan"
    assert words in compared.label
    assert tick_robots.compared_program(tick_of, compared) == (compared, {})


def test_a_solver_with_other_torques_is_a_row_without_a_time(monkeypatch, record):
    pytest.importorskip("quadprog", reason="quadprog is not installed (extra: test)")
    controller = QUADRUPED.controller()
    states = tuple(values[::20] for values in record)
    cone = (tick_cases.FRICTION, QUADRUPED.least_force)
    problems = tick_full_form.full_form(controller, QUADRUPED.sites, cone, states, states[0][0])
    (right,) = tick_peers.solvers(problems, only=("quadprog",))
    wrong = replace(right, name="other", solutions=tuple(1.1 * x for x in right.solutions))
    unsolved = replace(right, name="lost", solutions=tuple(np.nan * x for x in right.solutions))
    absent = tick_peers.SolverTimes("none (absent: install it)")
    monkeypatch.setattr(tick_peers, "solvers", lambda _: [right, wrong, unsolved, absent])
    rows = tick.usual_form_rows(QUADRUPED, controller, states, 1e-6)
    assert [row["peer_time"] is not None for row in rows] == [True, False, False, False]
    names = ("other (not compared: its torques", "lost (not compared: its torques")
    assert [row["peer"].split(" differ")[0] for row in rows] == [right.name, *names, absent.name]


def test_the_gaps_are_those_of_the_torques_and_accelerations(monkeypatch, record, tmp_path):
    """The program is replaced by the dynamics of MuJoCo at our contact forces."""
    q, v = (values[:2] for values in record)
    controller = QUADRUPED.controller()
    stance = tsid.Stance(QUADRUPED, controller, q, v)
    ref = controller.reference_at(q[0])
    model = QUADRUPED.spec().compile()
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    torques, accelerations = [], []
    for a, b in zip(q, v, strict=True):
        ours = controller.solve(a, b, ref)
        data.qpos[:], data.qvel[:], data.ctrl[:] = a, b, ours.u
        J = tick_cases.point_jacobian(model, data, QUADRUPED.sites)
        normal_and_tangents = ours.contact_forces[:, [1, 2, 0]]
        data.qfrc_applied[:] = J.T @ normal_and_tangents.ravel()
        mujoco.mj_forward(model, data)
        torques.append(data.qfrc_actuator[6:].copy())
        accelerations.append(data.qacc[6:].copy())
    torques[1][3] += 0.5
    solution = tsid.Record(np.zeros(2), np.zeros(2), np.array(torques), np.array(accelerations))
    monkeypatch.setattr(tsid.Stance, "run", lambda *_, **__: solution)
    gaps = tsid.differences(stance, tmp_path)
    assert gaps["torque, N m"] == pytest.approx(0.5, abs=1e-6)
    assert gaps["motion"] < 1e-6
    assert gaps["unsolved"] == 0


@pytest.mark.skipif(tsid.PREFIX not in os.environ, reason=tsid.ABSENT)
def test_tsid_has_our_torques_and_our_motion(record, tmp_path):
    program = tsid.build(tmp_path)
    assert program.reason == ""
    tick_of = tick_robots.Tick(QUADRUPED, QUADRUPED.controller(), None, record, (0.0, 0.0))
    compared, gaps = tick_robots.compared_program(tick_of, program)
    assert compared is program
    assert gaps["torque, N m"] < 1e-5
    assert gaps["motion"] < 1e-3


def test_straight_line_text_is_the_same_controller_without_loops(record):
    controller = QUADRUPED.controller()
    text = tick_robots.straight_line(controller)
    assert controller.controller.stages.build.is_a("MXFunction")
    assert text.stages.build.is_a("SXFunction")
    law = controller_fun("straight", text.stages, "daqp")
    inputs = (record[0][7], record[1][7], controller.reference_at(record[0][0]), 1, controller.z0)
    u, straight = controller.function(*inputs)[0], law(*inputs)[0]
    assert float(ca.norm_inf(u)) > 1.0
    assert float(ca.norm_inf(u - straight)) < SAME_TORQUES
