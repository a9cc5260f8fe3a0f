"""Steps of a fixed size as compiled C, and one step over many states."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.codegen.compiler import process_folder
from mbcasadi.errors import CompilerError
from mbcasadi.simulation import fixed_step_fun

ROUNDING = 1e-12
FED_BACK = {f"{name}_next": name for name in ("q", "v", "act", "drift", "t")}
H = 1e-3


def start_of(model):
    system = mb.read_mjcf(models.path(model))
    v0 = np.random.default_rng(0).normal(size=system.nv)
    return system, np.array(system.tree.q0, dtype=float), v0


@pytest.mark.parametrize("model", ["four_bar", "slider_crank", "particle_on_circle"])
@pytest.mark.every(3)
def test_compiled_steps_are_those_of_casadi(model):
    system, q0, v0 = start_of(model)
    plain = mb.simulate_fixed_step(system, q0, v0, H, 400, keep=100)
    compiled = mb.simulate_fixed_step(system, q0, v0, H, 400, keep=100, compiled=True)
    assert np.abs(plain.q[-1] - plain.q[0]).max() > 1e-3
    for name in ("t", "q", "v", "drift", "drift_velocity"):
        a, b = getattr(compiled, name), getattr(plain, name)
        assert np.allclose(a, b, rtol=ROUNDING, atol=ROUNDING), name


def test_compiled_steps_of_a_pendulum_keep_its_energy():
    """(1/2) a'² - 9.81 cos a is constant; the judge is the formula."""
    a, rate = ca.SX.sym("a"), ca.SX.sym("rate")
    kinetic, potential = rate**2 / 2, -9.81 * ca.cos(a)
    system = mb.from_lagrangian(a, rate, kinetic=kinetic, potential=potential)
    run = mb.simulate_fixed_step(system, [1.0], [0.0], H, 2000, keep=100, compiled=True)
    energy = run.v[:, 0] ** 2 / 2 - 9.81 * np.cos(run.q[:, 0])
    assert np.abs(run.v).max() > 1.0
    assert np.abs(energy - energy[0]).max() < 1e-9


@pytest.mark.long
def test_one_step_over_many_states_is_the_run_of_each():
    system, q0, v0 = start_of("four_bar")
    batch = mb.batch(fixed_step_fun(system, H), feedback=FED_BACK)
    assert batch.lanes > 1
    assert not batch.scalar_functions
    speeds = v0 * np.linspace(0.1, 2.0, 11)[:, None]
    runs = [mb.simulate_fixed_step(system, q0, speed, H, 100, keep=100) for speed in speeds]
    starts = {name: np.array([getattr(run, name)[0] for run in runs]) for name in ("q", "v")}
    given = batch(
        **starts, act=[], drift=np.zeros(2), t=0.0, mask=np.ones(3), u=np.zeros(1), steps=100
    )
    assert np.allclose(given["q_next"], [run.q[-1] for run in runs], rtol=0, atol=1e-11)
    assert np.allclose(given["v_next"], [run.v[-1] for run in runs], rtol=0, atol=1e-10)
    assert np.allclose(given["t_next"], 100 * H)


def test_a_missing_compiler_is_said(monkeypatch):
    system, q0, v0 = start_of("particle_on_circle")
    monkeypatch.setenv("CC", "no_such_compiler")
    with pytest.raises(CompilerError, match="no_such_compiler"):
        mb.simulate_fixed_step(system, q0, v0, H, 100, keep=100, compiled=True)


def test_preparation_is_reported():
    system, q0, v0 = start_of("particle_on_circle")
    texts = []
    mb.simulate_fixed_step(
        system, q0, v0, H, 10, keep=10, compiled=True, progress=lambda text, _: texts.append(text)
    )
    assert texts == ["compiling the steps", "simulating"]


def test_the_same_c_is_compiled_once():
    x = ca.SX.sym("x")
    made = [compiled_function(ca.Function("f", [x], [x + 1])) for _ in range(2)]
    assert made[0](1) == made[1](1) == 2
    files = set(process_folder().glob("*.c"))
    compiled_function(ca.Function("f", [x], [x + 1]))
    assert set(process_folder().glob("*.c")) == files
