"""The neighbours' own objects move as we do, and their pages print what they say."""

import os
import warnings

import casadi as ca
import interop_cases as cases
import numpy as np
import pytest
from interop_cases import PERIOD, QUIET
from support.pages import assert_prints_what_it_says

from mbcasadi.interop import to_acados_model, to_do_mpc_model, to_rockit
from mbcasadi.mpc import StepOptions, discrete_dynamics


@pytest.fixture(scope="module")
def four_bar():
    return cases.four_bar()


@pytest.fixture(scope="module")
def moving(four_bar):
    return cases.moving(four_bar)


def neighbour(name):
    """Return another package; its warnings on import are no concern of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed here")


@pytest.mark.parametrize("period", [None, PERIOD])
def test_do_mpc_itself_simulates_our_motion(four_bar, moving, period):
    do_mpc = neighbour("do_mpc")
    x, u = moving
    simulator = do_mpc.simulator.Simulator(to_do_mpc_model(four_bar, period=period))
    tight = {} if period else {"abstol": 1e-11, "reltol": 1e-11}
    simulator.set_param(t_step=PERIOD, **tight)
    simulator.setup()
    simulator.x0 = x
    actual = simulator.make_step(np.array([u])).ravel()
    expected = discrete_dynamics(four_bar, PERIOD, StepOptions(substeps=1 if period else 10))(
        x, u, []
    )
    np.testing.assert_allclose(actual, expected.full().ravel(), atol=1e-12 if period else 1e-8)


def test_rockit_itself_finds_the_optimum_of_opti(four_bar, moving):
    rockit = neighbour("rockit")
    x0, _ = moving
    ocp, q, v, u, _ = to_rockit(four_bar, 10, PERIOD)
    ocp.subject_to(ocp.at_t0(ca.vertcat(q, v)) == x0)
    ocp.subject_to((u <= 4) >= -4, include_last=False)
    ocp.add_objective(ocp.sum(1e-3 * ca.sumsqr(u)) + ocp.sum(ca.sumsqr(v), include_last=True))
    ocp.set_initial(q, x0[:4])
    ocp.set_initial(v, x0[4:])
    ocp.solver("ipopt", QUIET)
    ocp.method(rockit.MultipleShooting(N=10, M=1, intg="rk"))
    _, solution = ocp.solve().sample(u, grid="control")
    _, expected = cases.swing(four_bar, moving)
    np.testing.assert_allclose(np.ravel(solution)[:10], expected.ravel(), atol=1e-4)


@pytest.mark.skipif("ACADOS_SOURCE_DIR" not in os.environ, reason="acados is not built here")
@pytest.mark.filterwarnings("ignore")  # acados knows no release of CasADi as new as ours
@pytest.mark.parametrize("kind", ["ERK", "IRK"])
def test_acados_itself_integrates_our_motion(four_bar, moving, kind, tmp_path, monkeypatch):
    acados = neighbour("acados_template")
    monkeypatch.chdir(tmp_path)
    sim = acados.AcadosSim()
    sim.model = to_acados_model(four_bar)
    sim.model.name += kind.lower()
    sim.solver_options.T, sim.solver_options.num_steps = PERIOD, 10
    sim.solver_options.integrator_type, sim.solver_options.num_stages = kind, 4
    x, u = moving
    actual = acados.AcadosSimSolver(sim, verbose=False).simulate(x=x, u=np.array(u))
    expected = discrete_dynamics(four_bar, PERIOD, StepOptions(substeps=4))(x, u, []).full().ravel()
    np.testing.assert_allclose(actual, expected, atol=1e-7)


def test_the_code_of_the_page_on_acados_prints_what_it_says():
    assert_prints_what_it_says("coming-from/acados.md", 2)
