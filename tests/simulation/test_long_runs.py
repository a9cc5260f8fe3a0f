"""Steps of one size: order, no drift and no growth of memory on a closed loop."""

import re
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from simulation_mechanisms import particle
from support.corpora import ROOT

import mbcasadi as mb
from mbcasadi.errors import MotionError, ProblemError
from mbcasadi.simulation import InitialConditions, simulate_fixed_step

DRIFT_TOL = 1e-11  # m; phi of the four-bar carries rounding errors of 1e-16
GROWTH = 4 * 2**20  # bytes; a leak of one state for each step would be more than this


def frictionless_four_bar() -> mb.System:
    text = (ROOT / "mujoco_models" / "four_bar.xml").read_text()
    return mb.read_mjcf(re.sub(r'damping="[^"]*"', 'damping="0"', text))


def turning(system: mb.System, speed: float) -> np.ndarray:
    """Return the admissible velocity whose first entry is `speed`."""
    free = np.linalg.svd(system.constraint_jacobian(system.tree.q0).full())[2][-1]
    return speed * free / free[0]


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_forty_thousand_steps_of_a_four_bar_neither_drift_nor_grow():
    system = frictionless_four_bar()
    memory = []
    run = simulate_fixed_step(
        system, system.tree.q0, turning(system, 20.0), 1e-3, 40_000,
        progress=lambda *_: memory.append(resident()),
    )  # fmt: skip
    assert run.steps == 40_000
    assert run.t[-1] == pytest.approx(40.0)
    assert run.q[-1, 0] > 100 * 2 * np.pi  # the crank turns
    assert run.drift.max() < DRIFT_TOL
    assert run.drift_velocity.max() < DRIFT_TOL
    assert np.ptp(run.energy) < 1e-5 * run.energy[0]
    assert memory[-1] - memory[len(memory) // 4] < GROWTH


def test_it_agrees_with_the_adaptive_integrator_at_order_four_or_better():
    system = frictionless_four_bar()
    start = system.tree.q0, turning(system, 20.0)
    exact = mb.simulate(system, *start, 0.5, rtol=1e-11, atol=1e-13).q[-1]
    errors = [
        np.abs(simulate_fixed_step(system, *start, 0.5 / n, n, keep=n).q[-1] - exact).max()
        for n in (400, 800)
    ]
    assert errors[0] > 1e-9
    assert np.log2(errors[0] / errors[1]) > 3.7


def test_forces_controls_and_masks_act_in_every_step():
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = particle(2, phi=lambda q, *_: q[1]).with_mask([0])
    force = ca.Function("force", [t, q, v], [ca.vertcat(ca.cos(t), 1)], ["t", "q", "v"], ["f"])
    free = simulate_fixed_step(system, [0, 0], [0, 0], 1e-3, 1000, force=force)
    np.testing.assert_allclose(free.q[-1], [1 - np.cos(1.0), 0.5], atol=1e-9)
    active = InitialConditions(mask=[1])
    held = simulate_fixed_step(system, [0, 0.3], [0, 1], 1e-3, 1000, force=force, initial=active)
    np.testing.assert_allclose(held.q[-1], [1 - np.cos(1.0), 0.0], atol=1e-9)
    pushed = mb.from_lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, B=np.eye(2))
    run = simulate_fixed_step(pushed, [0, 0], [0, 0], 0.01, 100, keep=100, u=[1.0, -2.0])
    np.testing.assert_allclose(run.q[-1], [0.5, -1.0], atol=1e-12)


def test_what_cannot_run_is_refused():
    system = particle(1)
    for step, count, keep in ((0.0, 10, 1), (np.nan, 10, 1), (0.1, 10, 3), (0.1, 0, 1)):
        with pytest.raises(ProblemError, match=r"multiple of keep|step = nan"):
            simulate_fixed_step(system, [0.0], [0.0], step, count, keep=keep)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 1), ca.SX.sym("v", 1)
    blow_up = ca.Function("force", [t, q, v], [1e3 * v**3])
    with pytest.raises(MotionError, match="NaN or infinite at") as end:
        simulate_fixed_step(system, [0.0], [1.0], 0.1, 1000, keep=10, force=blow_up)
    assert len(end.value.trajectory.t) >= 1
