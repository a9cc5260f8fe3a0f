"""Each Lagrangian twin and its MJCF are one mechanism, in different coordinates.

The twins share nothing with the path from MJCF: no recursion, no MuJoCo, no `connect`.
"""

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from twin_states import acceleration, admissible_states, array, embedding, null_space
from twins import (
    cooperating_robots,
    five_bar,
    flexible_slider_crank,
    parallelogram,
    particle_on_circle,
    planar_3rrr,
    prr_arm,
    slider_crank,
    spatial_loop,
    topology_switch,
    two_mass_spring,
)
from twins.energies import GRAVITY

import mbcasadi as mb
from mbcasadi import models

STATES = 6
ROUNDING = 1e-10  # relative; hundreds of operations, mass matrices of condition up to 1e4


class Pair(NamedTuple):
    """A twin and its model file, an assembled pose, and the map between their coordinates."""

    twin: mb.System
    model: mb.System
    start: tuple[float, ...]
    to_mjcf: Callable[[ca.SX], ca.SX]


def pair(module, file: str, replaced=("", ""), **options) -> Pair:
    text = models.path(file).read_text()
    assert replaced[0] in text
    return Pair(
        module.system(**options),
        mb.read_mjcf(text.replace(*replaced)),
        module.START,
        module.to_mjcf,
    )


def bennett() -> Pair:
    loop = spatial_loop.BENNETT
    return Pair(
        spatial_loop.system(loop),
        mb.read_mjcf(models.path("spatial_loop")),
        loop.start,
        lambda q: spatial_loop.to_mjcf(q, loop),
    )


PAIRS: dict[str, Callable[[], Pair]] = {
    "particle_on_circle": lambda: pair(particle_on_circle, "particle_on_circle"),
    "prr_arm": lambda: pair(prr_arm, "prr_arm"),
    "slider_crank": lambda: pair(
        slider_crank, "slider_crank", link_inertia=slider_crank.MJCF_INERTIA
    ),
    "two_mass_spring": lambda: pair(two_mass_spring, "two_mass_spring"),
    "cooperating_robots": lambda: pair(cooperating_robots, "cooperating_arms"),
    "five_bar": lambda: pair(five_bar, "five_bar"),
    "planar_3rrr": lambda: pair(planar_3rrr, "planar_3rrr"),
    "parallelogram": lambda: pair(parallelogram, "parallelogram"),
    "flexible_slider_crank": lambda: pair(flexible_slider_crank, "flexible_slider_crank"),
    "topology_switch": lambda: pair(
        topology_switch, "topology_switch", replaced=('active="false"', 'active="true"')
    ),
    "bricard": lambda: pair(spatial_loop, "bricard"),
    "bennett": bennett,
}


@pytest.fixture(scope="module", params=sorted(PAIRS))
def mechanism(request: pytest.FixtureRequest) -> Pair:
    return PAIRS[request.param]()


def states(mechanism: Pair):
    """Yield (q, v) of the twin, (q, v) of the model, and E, b of `a_m = E a + b`."""
    there = embedding(mechanism.to_mjcf, mechanism.twin.nv)
    for q, v in admissible_states(mechanism.twin, mechanism.start, STATES):
        q_m, E, b = (np.array(value) for value in there(q, v))
        yield q, v, q_m.ravel(), E @ v, E, b.ravel()


def forces_besides_control(system: mb.System, q, v) -> np.ndarray:
    return array(system.bias_force(q, v)) - array(system.passive_force(q, v))


def test_poses_of_the_twin_are_poses_of_the_model_and_leave_it_the_same_freedom(mechanism):
    for q, _, q_m, _, E, _ in states(mechanism):
        assert np.abs(array(mechanism.model.constraint(q_m))).max(initial=0) < ROUNDING
        N = E @ null_space(np.array(mechanism.twin.constraint_jacobian(q)))
        N_m = null_space(np.array(mechanism.model.constraint_jacobian(q_m)))
        assert N.shape == N_m.shape
        assert np.abs(N - N_m @ (N_m.T @ N)).max() < ROUNDING * np.abs(N).max()


def test_inertia_bias_force_and_actuation_are_those_of_the_model(mechanism):
    """Compared along the motions that both allow, and in full where the coordinates correspond."""
    twin, model = mechanism.twin, mechanism.model
    for q, v, q_m, v_m, E, b in states(mechanism):
        same = twin.nv == model.nv
        N = np.eye(twin.nv) if same else null_space(np.array(twin.constraint_jacobian(q)))
        M, M_m = np.array(twin.mass_matrix(q)), np.array(model.mass_matrix(q_m))
        h_m = forces_besides_control(model, q_m, v_m) + M_m @ b
        scale = np.abs(M).max()
        assert np.abs(N.T @ (E.T @ M_m @ E - M) @ N).max() < ROUNDING * scale
        h = forces_besides_control(twin, q, v)
        if same:
            assert np.abs(E.T @ h_m - h).max() < ROUNDING * (1 + np.abs(h).max())
        B, B_m = np.array(twin.actuation(q)), np.array(model.actuation(q_m))
        assert np.abs(N.T @ (E.T @ B_m - B)).max(initial=0) < ROUNDING


def test_both_accelerate_alike_under_the_same_control(mechanism):
    rng = np.random.default_rng(4)
    for q, v, q_m, v_m, E, b in states(mechanism):
        u = rng.normal(size=mechanism.twin.nu)
        a = E @ acceleration(mechanism.twin, q, v, u) + b
        a_m = acceleration(mechanism.model, q_m, v_m, u)
        assert np.abs(a - a_m).max() < ROUNDING * np.abs(a_m).max()


def test_some_models_are_opened_elsewhere_than_their_twins():
    pairs = {name: build() for name, build in PAIRS.items()}
    more = {name for name, p in pairs.items() if p.twin.nv != p.model.nv}
    assert more == {"particle_on_circle", "prr_arm", "slider_crank"}


def test_without_the_inertia_that_mujoco_wants_the_slider_crank_is_the_papers():
    """The file's links have 1e-9 kg m²; without it the accelerations differ by as much."""
    mechanism = pair(slider_crank, "slider_crank")
    for q, v, q_m, v_m, E, b in states(mechanism):
        a = E @ acceleration(mechanism.twin, q, v, [3.0]) + b
        a_m = acceleration(mechanism.model, q_m, v_m, [3.0])
        assert np.abs(a - a_m).max() < 10 * slider_crank.MJCF_INERTIA * np.abs(a_m).max()


def multipliers(system: mb.System, q, v, a, u) -> np.ndarray:
    """Return the least-norm lam of `M a + h = f + B u + Aᵀ lam`."""
    needed = np.array(system.mass_matrix(q)) @ a + forces_besides_control(system, q, v)
    needed -= np.array(system.actuation(q)) @ u
    A = np.array(system.constraint_jacobian(q))
    return np.linalg.pinv(A.T, rcond=ROUNDING) @ needed


def test_the_surface_bears_the_pin_of_the_prr_arm_and_the_weight_of_its_carriage():
    mechanism, u = PAIRS["prr_arm"](), np.array([40.0, -7.0, 3.0])
    weight = prr_arm.MASS / 6 * GRAVITY
    for q, v, q_m, v_m, *_ in states(mechanism):
        a = acceleration(mechanism.twin, q, v, u)
        a_m = acceleration(mechanism.model, q_m, v_m, u)
        surface = multipliers(mechanism.twin, q, v, a, u).item()
        pin = multipliers(mechanism.model, q_m, v_m, a_m, u)
        assert surface == pytest.approx(pin[2] + weight, rel=ROUNDING)
