"""The benchmark of MPC times solutions that its peers confirm, with bounds that hold."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from bench import mpc, mpc_acados, mpc_rigid_body


def test_bounds_of_control_and_speed_hold_somewhere_in_the_closed_loop():
    law = mpc.double_integrator(6, box=True)
    record, u, z = mpc.closed_loop(law, law.function, mpc.QUICK_TICKS)
    assert np.abs(u).max() == pytest.approx(1.0, abs=1e-9)
    assert np.abs(record["x0"][:, 1]).max() == pytest.approx(0.8, abs=1e-6)
    active = mpc.active_sets(law.controller, z)
    assert active.shape == (mpc.QUICK_TICKS, law.controller.stages.m)
    assert 0.05 < np.mean(np.any(active != 0, axis=1)) < 0.9


def test_acados_runs_in_an_environment_of_its_own_and_a_failure_is_a_row(
    monkeypatch, tmp_path, acados_python
):
    monkeypatch.setenv(mpc_acados.PYTHON, str(acados_python))
    x, u, p = ca.SX.sym("x", 2), ca.SX.sym("u"), ca.SX.sym("p")
    ocp = SimpleNamespace(
        name="pair", nx=2, nu=1, np_=1, horizon=3, period=0.1, u_bounds=np.array([[-np.inf, 2]]),
        dynamics=ca.Function("F", [x, u, p], [x + 0.1 * ca.vertcat(x[1], u)]),
        residual=ca.Function("r", [x, u, p], [ca.vertcat(x, u)]),
        terminal=ca.Function("e", [x, p], [x]), motion=None,
        path=ca.Function("g", [x, u, p], [x[0]]), path_bounds=np.array([[-np.inf, 3.0]]),
    )  # fmt: skip
    guess = SimpleNamespace(x=np.zeros((4, 2)), u=np.full((3, 1), 0.5))
    tasks = [(np.ones(2), np.zeros((4, 1)), guess)] * 2
    seconds, controls = mpc_acados.solve_tasks(ocp, "SQP", tasks)
    np.testing.assert_array_equal(seconds, 1e-3)
    np.testing.assert_array_equal(controls, 0.5)
    assert np.isnan(mpc_acados.solve_tasks(ocp, "SQP_RTI", tasks)[0]).all()
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no such library' >&2; exit 1\n")
    python.chmod(0o755)
    monkeypatch.setenv(mpc_acados.PYTHON, str(python))
    with pytest.raises(mb.errors.SolverError, match="no such library"):
        mpc_acados.solve_tasks(ocp, "SQP", tasks)
    monkeypatch.setenv(mpc_acados.PYTHON, str(tmp_path / "nothing"))
    with pytest.raises(mb.errors.SolverError, match="expected the path of a Python"):
        mpc_acados.solve_tasks(ocp, "SQP", tasks)


def test_the_quadruped_stands_the_pushes_under_which_it_is_timed():
    law = mpc_rigid_body.quadruped().controller
    record, *_ = mpc_rigid_body.closed_loop(law.function, law.z0, 2 * mpc_rigid_body.PUSHED)
    height, speed = record["x0"][:, 5], record["x0"][:, 9:11]
    assert np.abs(np.diff(speed, axis=0)).max() > 0.5  # it was pushed
    assert np.abs(height - mpc_rigid_body.HEIGHT).max() < 0.01
