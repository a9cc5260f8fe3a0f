"""The benchmark of the control tick poses the problems that it says."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.benchmarks import tick, tick_full_form, tick_peers

TICKS = 40
# One step of 1 ms along a velocity that keeps the feet: the error is of second order.
DRIFT = 1e-5
SOLVERS_AGREE = 1e-7


@pytest.fixture(scope="module")
def record():
    return tick.sway(models.path("quadruped"), TICKS)


def test_the_trunk_sways_and_the_feet_stay(record):
    model = mujoco.MjModel.from_xml_path(str(models.path("quadruped")))
    data = mujoco.MjData(model)
    places = []
    for q in record[0]:
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        places.append([data.site(foot).xpos.copy() for foot in tick.FEET])
    assert np.max(np.ptp(record[0][:, :3], axis=0)) > 1e-3
    assert np.max(np.ptp(places, axis=0)) < DRIFT


def test_the_usual_form_has_the_controllers_torques(record):
    pytest.importorskip("quadprog", reason="quadprog is not installed (extra: test)")
    controller = tick.quadruped_controller(models.path("quadruped"))
    q, v = (values[::20] for values in record)
    cone = (tick.FRICTION, tick.LEAST_FORCE)
    problems = tick_full_form.full_form(controller, tick.FEET, cone, (q, v), q[0])
    ref = controller.reference_at(q[0])
    (quadprog,) = tick_peers.solvers(problems, only=("quadprog",))
    assert len(quadprog.solutions) == len(problems)
    for problem, x, a, b in zip(problems, quadprog.solutions, q, v, strict=True):
        u, _, status, *_ = controller.function(a, b, ref, 1, controller.z0)
        assert float(status) == 0
        assert np.max(np.abs(np.array(u).ravel())) > 1.0
        assert np.max(np.abs(problem.torques(x) - np.array(u).ravel())) < tick.SAME_TORQUES


def test_the_solver_alone_solves_the_recorded_problems(record, tmp_path):
    pytest.importorskip("quadprog", reason="quadprog is not installed (extra: test)")
    controller = tick.quadruped_controller(models.path("quadruped"))
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
