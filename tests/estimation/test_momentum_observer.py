"""The residual of the generalised momentum: the external force behind K/(s + K), and no other."""

import casadi as ca
import numpy as np
import pytest
from scipy.stats import binom
from support.compiled import compiled

import mbcasadi as mb
from mbcasadi.contacts import with_contacts
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.estimation import momentum_observer, residual_forces
from mbcasadi.plant import Plant
from mbcasadi.system import evaluate

GAIN = 50.0
QUIET = {"rate_noise": 1e-3, "force_noise": 0.05}
SWINGS = {
    "scara": lambda t: np.array([8 * np.sin(5 * t), 3 * np.cos(4 * t), 29.4, 0.1]),
    "four_bar": lambda t: np.array([0.6 * np.sin(5 * t)]),
}
PUSHES = {"scara": ("hand", (5.0, -3.0, 0.4)), "four_bar": ("coupler", (5.0, 0.0, 4.0))}
PUSHED_FROM = 0.3  # s


def system_of(name):
    return mb.read_mjcf(mb.models.path(name))


def start_of(system):
    return next(iter(system.tree.keyframes.values()), system.tree.q0)


def observed(observer, **inputs):
    """Return the outputs of a tick as arrays."""
    return {key: np.array(value).ravel() for key, value in observer(**inputs).items()}


def force_projector_of(system):
    """Return q → (nv, nv), the part of a force that rows leave free, in NumPy.

    Lengths are those of coordinates in the sizes of the mechanism: `v = D v'`, `f' = D f`.
    """
    D = np.diag(system.scales.coordinates)

    def projector(q):
        A = np.array(evaluate(system.constraint_jacobian, {"q": q, "t": 0.7})) @ D
        free = np.eye(system.nv) - np.linalg.pinv(A, rcond=1e-9) @ A
        return np.linalg.solve(D, free @ D)

    return projector if system.nc else lambda _q: np.eye(system.nv)


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
def test_the_residual_is_the_push_on_a_body_behind_the_filter(name):
    coarse, fine = Run(name, 1e-3), Run(name, 5e-4)
    assert fine.size > 0.3  # N m: it is pushed
    assert fine.error < 0.01 * fine.size
    assert fine.error < 0.6 * coarse.error, "only the steps of plant and observer part them"


@pytest.mark.parametrize("name", PUSHES)
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
def test_false_alarms_are_as_frequent_as_stated(name, alpha, gain, force):
    spacing = int(np.ceil(8 / (gain * 1e-3)))  # ticks after which residuals forget each other
    samples = alarms(name, gain, alpha, 2000 * spacing, force)[spacing::spacing]
    low, high = binom.ppf([0.025, 0.975], len(samples), alpha)
    assert low <= samples.sum() <= high


def standing(push=None, duration=1.5):
    """Return the plant of a quadruped that stands by servos of its own, and u of the last tick."""
    plant = Plant(mb.models.path("quadruped"))
    system = system_of("quadruped")
    stand = system.tree.keyframes["stand"]
    plant.reset(stand)
    u = np.zeros(12)
    for k in range(round(duration / plant.timestep)):
        if push is not None and k * plant.timestep >= 1.0:
            plant.apply_body_forces({"trunk": push})
        yield plant, u
        u = 60 * (stand[7:] - plant.q[7:]) - 2 * plant.v[6:]
        plant.step(u)


def feet_of(system):
    return [contact.as_contact() for contact in mb.contacts_of(system, ground="floor")]


@pytest.mark.parametrize("push", [None, (10.0, 5.0, -30.0)])
def test_the_residual_of_a_standing_robot_is_that_of_its_feet(push):
    system = system_of("quadruped")
    feet = feet_of(system)
    observer, forces = momentum_observer(system, gain=GAIN, **QUIET), residual_forces(system, feet)
    z = 0
    for plant, u in standing(push):
        out = observed(observer, q=plant.q, v=plant.v, u=u, dt=plant.timestep, z=z)
        z = out["z_next"]
    external = plant.data.qfrc_constraint + plant.external_force
    assert np.linalg.norm(plant.data.qfrc_constraint) > 100
    assert np.linalg.norm(out["residual"] - external) < 0.005 * np.linalg.norm(external)
    f = np.array(forces(plant.q, out["residual"])).reshape(-1, 3)
    measured = plant.contact_forces_at({foot.frame: foot.place for foot in feet})
    for foot, own in zip(feet, f, strict=True):
        force = measured[foot.frame][0]
        assert force.normal > 25
        assert own[0] == pytest.approx(force.normal, rel=0.01)
        assert own[1:] == pytest.approx(force.force[:2], abs=0.01 * force.normal)
    assert out["collision"], "feet that are no rows are external"


def test_feet_that_are_rows_leave_the_push_on_the_trunk_alone():
    system = system_of("quadruped")
    walker = with_contacts(system, feet_of(system)).with_mask()
    observer = momentum_observer(walker, gain=GAIN, rate_noise=2e-3, force_noise=0.2)
    P = force_projector_of(walker)
    push, z, hits, r = np.array([10.0, 5.0, -30.0]), 0, [], []
    for plant, u in standing(push):
        on = np.ones(walker.nc)
        out = observed(observer, q=plant.q, v=plant.v, u=u, mask=on, dt=plant.timestep, z=z)
        z = out["z_next"]
        hits.append(out["collision"][0])
        r.append(out["residual"])
    expected = P(plant.q) @ plant.external_force
    assert np.linalg.norm(expected) > 5
    assert np.linalg.norm(r[-1] - expected) < 0.02 * np.linalg.norm(expected)
    assert np.linalg.norm(r[990]) < 0.02 * np.linalg.norm(expected)
    assert not any(hits[500:1000])
    assert all(hits[1050:])


def test_rows_that_go_off_count_until_the_end_of_the_tick():
    system = system_of("quadruped")
    walker = with_contacts(system, feet_of(system)).with_mask()
    observer = momentum_observer(walker, gain=1e9, **QUIET)
    q, v = start_of(system), np.zeros(18)
    weight = np.array(system.bias_force(q, v)).ravel()
    on, off = np.ones(walker.nc), np.zeros(walker.nc)
    still = {"q": q, "v": v, "u": 0, "dt": 1e-3}
    z = observed(observer, mask=on, z=0, **still)["z_next"]
    last = observed(observer, mask=off, z=z, **still)
    in_air = observed(observer, mask=off, z=last["z_next"], **still)
    assert in_air["residual"] == pytest.approx(weight, abs=1e-9)
    assert last["residual"] == pytest.approx(force_projector_of(walker)(q) @ weight, abs=1e-6)


@pytest.mark.parametrize("name", ["scara", "four_bar", "quadruped"])
def test_generated_c_gives_the_same(name, tmp_path):
    system, rng = system_of(name), np.random.default_rng(5)
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    in_c = compiled(observer, tmp_path)
    z = np.zeros(observer.numel_in("z"))
    for k in range(5):
        q, v = system.scales.states[k % len(system.scales.states)]
        u = rng.standard_normal(system.nu)
        inputs = {"q": q, "v": v, "u": u, "dt": 1e-3, "z": z}
        ours, theirs = observed(observer, **inputs), observed(in_c, **inputs)
        for key, value in ours.items():
            assert theirs[key] == pytest.approx(value, rel=1e-9, abs=1e-9), key
        z = ours["z_next"]


@pytest.mark.parametrize(("real", "rounding"), [("double", 1e-9), ("float", 1e-3)])
def test_an_export_gives_the_same_in_double_and_in_float(real, rounding, tmp_path):
    system = system_of("four_bar")
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    exported = mb.export_c(observer, tmp_path / "observer", real=real).load()
    q, z, z_c = start_of(system), 0, 0
    for k in range(50):
        v = 0.01 * k * np.ones(3)
        inputs = {"q": q, "v": v, "u": 0.2, "dt": 1e-3}
        ours, theirs = observed(observer, **inputs, z=z), observed(exported, **inputs, z=z_c)
        z, z_c = ours["z_next"], theirs["z_next"]
        assert theirs["residual"] == pytest.approx(ours["residual"], abs=rounding)
    assert np.linalg.norm(ours["residual"]) > 0.01


@pytest.mark.parametrize("name", ["q", "v", "u", "dt"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e30])
def test_bad_input_keeps_the_residual_and_the_next_sample_goes_on(name, bad):
    system = system_of("scara")
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    good = {"q": start_of(system), "v": np.zeros(4), "u": np.zeros(4), "dt": 1e-3}
    z = 0
    for _ in range(400):
        before = observed(observer, **good, z=z)
        z = before["z_next"]
    load = np.array(system.bias_force(good["q"], good["v"])).ravel()
    assert before["residual"] == pytest.approx(load, abs=1e-6)
    assert before["collision"]
    spoilt = good | {name: np.full(np.size(good[name]), bad)}
    out = observed(observer, **spoilt, z=z)
    assert out["status"] == 3
    assert out["flags"] == mb.description.status.Flag.GATED
    assert out["residual"] == pytest.approx(before["residual"])
    assert out["collision"]
    for _ in range(3):
        out = observed(observer, **good, z=out["z_next"])
        assert out["status"] == 0
        assert out["residual"] == pytest.approx(load, abs=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e25])
def test_a_broken_memory_is_a_new_start(bad):
    system = system_of("four_bar")
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    good = {"q": start_of(system), "v": np.zeros(3), "u": 0, "dt": 1e-3}
    out = observed(observer, **good, z=np.full(observer.numel_in("z"), bad))
    assert out["status"] == 4
    assert out["residual"] == pytest.approx(np.zeros(3))
    assert observed(observer, **good, z=out["z_next"])["status"] == 0


def test_a_rate_beyond_all_bounds_leaves_finite_outputs():
    system = system_of("scara")
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    rng = np.random.default_rng(0)
    for scale in 10.0 ** np.arange(0, 20, 2):
        v, z = scale * rng.standard_normal(4), rng.standard_normal(observer.numel_in("z"))
        out = observed(observer, q=start_of(system), v=v, u=v, dt=1e-3, z=z)
        assert all(np.all(np.isfinite(value)) for value in out.values())


def test_wrong_arguments_are_refused():
    system = system_of("scara")
    with pytest.raises(ProblemError, match=r"gain = -1"):
        momentum_observer(system, gain=-1.0, **QUIET)
    with pytest.raises(ProblemError, match=r"false_alarm = 1\.5; expected a share"):
        momentum_observer(system, gain=1.0, false_alarm=1.5, **QUIET)
    with pytest.raises(ShapeError, match=r"rate_noise.*\(4,\)"):
        momentum_observer(system, gain=1.0, rate_noise=[1.0, 1.0], force_noise=1.0)
    with pytest.raises(
        ProblemError, match=r"force_noise is 0\.0; expected standard deviations above 0"
    ):
        momentum_observer(system, gain=1.0, rate_noise=1.0, force_noise=0.0)
    weighed = mb.read_mjcf(mb.models.path("scara"), parameters=["body:hand:mass"])
    with pytest.raises(ProblemError, match="has physical parameters"):
        momentum_observer(weighed, gain=1.0, **QUIET)
    with pytest.raises(ProblemError, match="without contacts"):
        residual_forces(system, [])
