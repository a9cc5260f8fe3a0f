"""Every mechanism that the formulations have to agree on also moves, in each of them."""

import numpy as np
import pytest
from support.constrained_mechanisms import MECHANISMS, mechanism

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.dynamics.formulations import FORMULATIONS, SEMIDEFINITE
from mbcasadi.simulation import ControlLoop, IntegrationOptions

DRIFT_TOL = 2e-12  # m, rad and their rates: Newton's last step leaves some 1e-13 of speeds above 1
# Seconds to build, and no other kind of rows.
LARGE = ("standing_quadruped", "doubled_feet", "standing_humanoid")
WORK_TOL = 1e-6  # J, at rtol 1e-9


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in LARGE])
@pytest.mark.every(3)
def test_it_moves_on_the_manifold_with_the_expected_rank(name):
    made = mechanism(name)
    v0 = np.random.default_rng(5).standard_normal(made.system.nv)
    formulation = "lagrange" if made.system.semidefinite else "projection"
    few = IntegrationOptions(max_steps=3000)
    run = mb.simulate(made.system, made.centre, v0, 0.5, formulation, integration=few)
    assert run.t[-1] == 0.5
    assert run.drift.max() < DRIFT_TOL
    assert run.drift_velocity.max() < DRIFT_TOL
    usual = 2 if name == "singular_slider_crank" else made.rank  # it leaves the singular pose
    assert set(run.rank) == {usual}


@pytest.mark.parametrize("formulation", sorted(FORMULATIONS))
@pytest.mark.parametrize("name", ["bennett", "climbing_particle", "moving_pendulum"])
@pytest.mark.every(3)
def test_all_formulations_move_alike(name, formulation):
    system, centre = mechanism(name).system, mechanism(name).centre
    v0 = np.random.default_rng(5).standard_normal(system.nv)
    times = np.linspace(0, 0.5, 6)
    run = mb.simulate(system, centre, v0, 0.5, formulation, times=times)
    reference = mb.simulate(system, centre, v0, 0.5, "lagrange", times=times)
    np.testing.assert_allclose(run.q, reference.q, atol=1e-7)
    np.testing.assert_allclose(run.v, reference.v, atol=1e-6)


@pytest.mark.parametrize("formulation", sorted(SEMIDEFINITE))
def test_a_singular_inertia_moves_where_it_is_definite_on_the_free_directions(formulation):
    made = mechanism("euler_parameters")
    v0 = np.random.default_rng(5).standard_normal(made.system.nv)
    run = mb.simulate(made.system, made.centre, v0, 0.5, formulation)
    assert np.ptp(run.energy) < WORK_TOL


@pytest.mark.parametrize("name", ["four_bar", "ball_loop", "bennett"])
def test_what_dampers_take_is_missing_in_the_energy(name):
    """`dE/dt = vᵀ f_d`: constraints do no work; the dampers' share is `f_passive(v) - f(0)`."""
    made = mechanism(name)
    system, times = made.system, np.linspace(0, 0.5, 1001)
    v0 = np.random.default_rng(6).standard_normal(system.nv)
    run = mb.simulate(system, made.centre, v0, 0.5, times=times, rtol=1e-10, atol=1e-12)
    passive = system.passive_force.map(len(times))
    damping = (passive(run.q.T, run.v.T) - passive(run.q.T, 0 * run.v.T)).full().T
    power = np.sum(run.v * damping, axis=1)
    h = times[1] - times[0]  # Simpson's rule
    work = h / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    assert work < -1e-3
    assert abs(run.energy[-1] - run.energy[0] - work) < WORK_TOL


@pytest.mark.long
def test_a_qp_controller_drives_the_four_bar_while_its_loop_stays_closed():
    system = mechanism("four_bar").system
    law = InverseDynamicsQP(system, tasks=[PostureTask(kp=100.0, joints=["crank"])])
    q0 = mb.assemble(system, system.tree.q0)
    target = law.reference_at(q0) + np.array([0.3, 0.0, 0.0])
    loop = ControlLoop(law, reference=lambda _: target)
    run = mb.simulate(system, q0, np.zeros(3), 1.0, controller=loop, rtol=1e-7)
    assert abs(run.q[-1, 0] - q0[0] - 0.3) < 1e-3
    assert np.abs(run.u).max() <= 1.5  # the motor's limit
    assert run.drift.max() < DRIFT_TOL
    open_loop = ControlLoop(law, reference=lambda _: target, mask=lambda _: np.zeros(1))
    blind = mb.simulate(system, q0, np.zeros(3), 0.05, controller=open_loop, rtol=1e-7)
    assert not np.allclose(blind.u[1], run.u[1], rtol=1e-3)
