"""The residual of the generalised momentum: the external force behind K/(s + K), and no other."""

import casadi as ca
import numpy as np
import pytest
from observed_mechanisms import (
    GAIN,
    QUIET,
    force_projector_of,
    observed,
    start_of,
    system_of,
)
from scipy.stats import binom

import mbcasadi as mb
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.estimation import momentum_observer
from mbcasadi.plant import Plant

SWINGS = {
    "scara": lambda t: np.array([8 * np.sin(5 * t), 3 * np.cos(4 * t), 29.4, 0.1]),
    "four_bar": lambda t: np.array([0.6 * np.sin(5 * t)]),
}
PUSHES = {"scara": ("hand", (5.0, -3.0, 0.4)), "four_bar": ("coupler", (5.0, 0.0, 4.0))}
PUSHED_FROM = 0.3  # s


class Run:
    """A plant that moves, an observer beside it, and the force that it should show."""

    def __init__(self, name, timestep, duration=0.8, push=True):
        system = system_of(name)
        plant = Plant(mb.models.path(name), rigid=True, timestep=timestep)
        plant.reset(start_of(system))
        observer = momentum_observer(system, gain=GAIN, period=timestep, **QUIET)
        P, e = force_projector_of(system), np.exp(-GAIN * timestep)
        out = observed(observer, q=plant.q, v=plant.v, u=0, dt=timestep, z=0)
        filtered, errors, sizes, hits = np.zeros(system.nv), [], [], []
        for k in range(round(duration / timestep)):
            if push and k * timestep >= PUSHED_FROM:
                plant.apply_body_forces({PUSHES[name][0]: PUSHES[name][1]})
            u = SWINGS[name](k * timestep)
            plant.step(u)
            out = observed(observer, q=plant.q, v=plant.v, u=u, dt=timestep, z=out["z_next"])
            filtered = P(plant.q) @ (e * filtered + (1 - e) * plant.external_force)
            errors.append(np.linalg.norm(out["residual"] - filtered))
            sizes.append(np.linalg.norm(filtered))
            hits.append(out["collision"][0])
        self.error, self.size, self.hits = np.max(errors), np.max(sizes), np.array(hits)
        self.pushed = np.arange(len(hits)) * timestep >= PUSHED_FROM


@pytest.mark.parametrize("name", PUSHES)
@pytest.mark.every(2)
def test_the_residual_is_the_push_on_a_body_behind_the_filter(name):
    coarse, fine = Run(name, 1e-3), Run(name, 5e-4)
    assert fine.size > 0.3  # N m: it is pushed
    assert fine.error < 0.01 * fine.size
    assert fine.error < 0.6 * coarse.error, "only the steps of plant and observer part them"


@pytest.mark.parametrize("name", PUSHES)
@pytest.mark.every(2)
def test_a_push_is_a_collision_and_motion_with_damping_is_none(name):
    run = Run(name, 5e-4)
    assert not run.hits[~run.pushed].any()
    assert run.hits[run.pushed][20:60].all()
    assert run.hits[run.pushed].mean() > 0.9


def with_moving_row():
    """Return an arm whose first joint follows a given motion: a row with time."""
    arm = system_of("scara")
    q, v, t = ca.SX.sym("q", 4), ca.SX.sym("v", 4), ca.SX.sym("t")
    return arm.with_rows(q, v, phi=q[0] - q[2] - 0.3 * ca.sin(2 * t), t=t)


LAWS = {
    name: lambda name=name: system_of(name)
    for name in ("scara", "four_bar", "bricard", "five_bar", "slider_crank", "quadruped")
}
LAWS |= {"muscles": lambda: system_of("muscle_arm"), "time": with_moving_row}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.every(3)
def test_a_step_of_the_dynamics_shows_the_projected_external_force(name):
    """With a filter that forgets at once, on moving states, rank-deficient rows included."""
    system, rng, dt = LAWS[name](), np.random.default_rng(3), 1e-6
    observer = momentum_observer(system, gain=1e9, period=dt, **QUIET)
    dynamics, P = forward_dynamics(system), force_projector_of(system)
    inertial = 0.0
    for q, v in system.scales.states[:5]:
        v = P(q).T @ v  # velocities are projected by the transpose
        push, u = rng.standard_normal(system.nv), 0.1 * rng.standard_normal(system.nu)
        known = {"u": u} | ({"act": rng.uniform(size=system.na)} if system.na else {})
        f = np.array(system.actuator_force(q=q, v=v, **known)["f_actuator"]).ravel()
        at = {"t": 0.7} if system.timed else {}
        a = np.array(dynamics(q=q, v=v, f=f + push, **at)["a"]).ravel()
        next_q = np.array(system.integrate(q, dt * v + dt**2 / 2 * a)).ravel()
        z = observed(observer, q=q, v=v, dt=dt, z=0, **known, **at)["z_next"]
        out = observed(observer, q=next_q, v=v + dt * a, dt=dt, z=z, **known, **at)
        expected = P(q) @ push
        moving = np.array(system.bias_force(q, v) - system.bias_force(q, 0 * v)).ravel()
        inertial = max(inertial, np.linalg.norm(P(q) @ moving))
        scale = np.linalg.norm(expected) + np.linalg.norm(moving) + 1.0
        assert np.linalg.norm(out["residual"] - expected) < 1e-3 * scale
    assert inertial > 1e-2 or name == "slider_crank", "terms of the velocity count"


def alarms(name, gain, alpha, ticks, force):
    """Return the ticks with a collision where noise alone moves a mechanism at rest.

    Forces, which motors give, are noisy by up to `force`.
    """
    system, rng, dt = system_of(name), np.random.default_rng(11), 1e-3
    q, still = start_of(system), np.zeros(system.nv)
    noise = {
        "rate_noise": 1e-2 * rng.uniform(0.5, 2.0, system.nv),
        "force_noise": force * rng.uniform(0.5, 1.0, system.nv),
    }
    observer = momentum_observer(system, gain=gain, false_alarm=alpha, period=dt, **noise)
    load = np.array(system.bias_force(q, still) - system.passive_force(q, still))
    moves = force_projector_of(system)(q)
    drive = np.linalg.pinv(moves @ np.array(system.actuation(q))) @ moves
    forces = load + noise["force_noise"][:, None] * rng.standard_normal((system.nv, ticks))
    out = observer.mapaccum("many", ticks, ["z"], ["z_next"], {})(
        q=np.tile(q[:, None], ticks),
        v=noise["rate_noise"][:, None] * rng.standard_normal((system.nv, ticks)),
        u=drive @ forces,
        dt=np.full((1, ticks), dt),
        z=np.zeros(observer.numel_in("z")),
    )
    return np.array(out["collision"]).ravel()


@pytest.mark.parametrize(
    ("name", "alpha", "gain", "force"),
    [
        ("scara", 0.02, 700.0, 0.3),
        ("scara", 0.3, 700.0, 0.3),
        ("scara", 0.05, 150.0, 0.5),
        ("four_bar", 0.05, 700.0, 1e-6),
        ("bricard", 0.2, 700.0, 1e-6),
    ],
)
@pytest.mark.every(2)
def test_false_alarms_are_as_frequent_as_stated(name, alpha, gain, force):
    spacing = int(np.ceil(8 / (gain * 1e-3)))  # ticks after which residuals forget each other
    samples = alarms(name, gain, alpha, 1000 * spacing, force)[spacing::spacing]
    low, high = binom.ppf([0.025, 0.975], len(samples), alpha)
    assert low <= samples.sum() <= high
