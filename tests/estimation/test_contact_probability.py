"""Which feet stand: by their forces, the momentum residual and the schedule, as log-odds."""

import numpy as np
import pytest
from observed_mechanisms import feet_of, observed, system_of
from scipy.stats import norm
from support.compiled import compiled

import mbcasadi as mb
from mbcasadi.contacts.touch_down import touch_down
from mbcasadi.errors import ProblemError
from mbcasadi.estimation import (
    ContactBelief,
    FootLoad,
    contact_probability,
    momentum_observer,
    residual_forces,
)
from mbcasadi.plant import Plant

LOAD = FootLoad(load=35.0, noise=12.0)
ON, OFF = np.ones(4), np.zeros(4)


def quadruped():
    system = system_of("quadruped")
    return system, feet_of(system)


def answer(function, z=0, **inputs):
    """Return the outputs of a tick as arrays."""
    return observed(function, **inputs, z=z)


def test_the_probability_is_that_of_bayes():
    system, feet = quadruped()
    belief = ContactBelief(stance=0.9, swing=0.3)
    fused = contact_probability(system, feet, force=LOAD, belief=belief)
    F = np.array([0.0, 10.0, 20.0, 30.0])
    for schedule, prior in ((ON, 0.9), (OFF, 0.3)):
        stands = prior * norm.pdf(F, LOAD.load, LOAD.noise)
        hangs = (1 - prior) * norm.pdf(F, 0.0, LOAD.noise)
        out = answer(fused, schedule=schedule, normal_force=F)
        assert out["probability"] == pytest.approx(stands / (stands + hangs), rel=1e-9)


def test_independent_sources_multiply_their_odds():
    system, feet = quadruped()
    q, rng = system.tree.keyframes["stand"], np.random.default_rng(1)
    weak = FootLoad(load=35.0, noise=40.0)
    both = contact_probability(system, feet, force=LOAD, residual=weak)
    first = contact_probability(system, feet, force=LOAD)
    second = contact_probability(system, feet, residual=weak)
    prior = answer(contact_probability(system, feet), schedule=ON)["probability"]
    F, r = np.array([5.0, 15.0, 20.0, 30.0]), rng.standard_normal(18)
    p, p1, p2, p0 = (
        answer(f, schedule=ON, **given)["probability"]
        for f, given in (
            (both, {"normal_force": F, "q": q, "residual": r}),
            (first, {"normal_force": F}),
            (second, {"q": q, "residual": r}),
            (contact_probability(system, feet), {}),
        )
    )

    def odds(x):
        return x / (1 - x)

    assert p0 == pytest.approx(prior)
    assert np.ptp(p2) > 1e-6
    assert odds(p) == pytest.approx(odds(p1) * odds(p2) / odds(p0), rel=1e-8)


def force_of(probability, prior):
    """Return the force at which a probability is reached, N."""
    logit = np.log(probability / (1 - probability)) - np.log(prior / (1 - prior))
    return LOAD.load / 2 + LOAD.noise**2 / LOAD.load * logit


@pytest.mark.parametrize(("scheduled", "prior"), [(1.0, 0.8), (0.0, 0.2)])
def test_the_mask_is_that_of_touch_down(scheduled, prior):
    """With forces alone, whose thresholds are those of the probability."""
    system, feet = quadruped()
    fused = contact_probability(system, feet, force=LOAD)
    rule = touch_down(["a"] * 4, force_of(0.6, prior), force_of(0.4, prior))
    rng, schedule = np.random.default_rng(2), np.full(4, scheduled)
    z, z_rule, masks = np.zeros(8), np.zeros(8), []
    for _ in range(400):
        F = rng.uniform(force_of(0.2, prior), force_of(0.8, prior), 4)
        out = answer(fused, z=z, schedule=schedule, normal_force=F)
        by_force = answer(rule, z=z_rule, schedule=schedule, normal_force=F)
        z, z_rule = out["z_next"], by_force["z_next"]
        assert out["mask"] == pytest.approx(by_force["mask"])
        assert z == pytest.approx(z_rule)
        masks.append(out["mask"])
    assert 0.2 < np.mean(masks) < 0.8


def test_a_foot_that_swings_counts_after_it_has_left_only():
    system, feet = quadruped()
    fused = contact_probability(system, feet, force=LOAD)
    z, used = np.zeros(8), []
    for schedule, F in ((1, 35.0), (0, 35.0), (0, 0.0), (0, 40.0), (1, 40.0), (1, 0.0)):
        out = answer(fused, z=z, schedule=schedule * ON, normal_force=F * ON)
        z = out["z_next"]
        used.append(out["mask"][0])
    assert used == [1, 0, 0, 1, 1, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_no_information(bad):
    system, feet = quadruped()
    fused = contact_probability(system, feet, force=LOAD, residual=LOAD)
    alone = contact_probability(system, feet, force=LOAD)
    prior = contact_probability(system, feet)
    q, F, r = system.tree.keyframes["stand"], np.array([0.0, 10.0, 20.0, 30.0]), np.full(18, bad)
    for schedule in (ON, OFF):
        expected = answer(alone, schedule=schedule, normal_force=F)
        out = answer(fused, schedule=schedule, normal_force=F, q=q, residual=r)
        assert out["probability"] == pytest.approx(expected["probability"])
        out = answer(
            fused, schedule=schedule, normal_force=F, q=np.full(19, bad), residual=np.zeros(18)
        )
        assert out["probability"] == pytest.approx(expected["probability"])
        lost = answer(fused, schedule=schedule, normal_force=np.full(4, bad), q=q, residual=r)
        assert lost["mask"] == pytest.approx(schedule), "the schedule is what is left"
        expected = answer(prior, schedule=schedule)
        assert lost["probability"] == pytest.approx(expected["probability"])
    out = answer(alone, schedule=np.full(4, np.nan), normal_force=np.array([0.0, 0, 40, 40]))
    assert out["mask"] == pytest.approx([0, 0, 1, 1])
    assert np.all(np.isfinite(answer(alone, z=np.nan, schedule=ON, normal_force=F)["z_next"]))


def test_two_sources_outweigh_a_broken_one():
    system, feet = quadruped()
    fused = contact_probability(
        system, feet, force=FootLoad(35.0, 5.0), residual=FootLoad(35.0, 5.0)
    )
    q = system.tree.keyframes["stand"]
    residual = weight_on_feet(system, feet, q, 35.0)
    stuck = answer(fused, schedule=ON, normal_force=np.full(4, -1e6), q=q, residual=residual)
    assert np.all(stuck["probability"] > 0.5), "a sensor that is stuck"


def weight_on_feet(system, feet, q, load):
    """Return (nv,) the residual of feet that press with `load`, N, each."""
    residual = np.zeros(system.nv)
    for foot in feet:
        J = np.array(system.frame(foot.frame, foot.kind).jacobian(q))[:3]
        residual += J.T @ np.array([0.0, 0.0, load])
    return residual


def test_forces_of_a_residual_are_those_that_made_it():
    """But for the damping, `d² (J Jᵀ + d²)⁻¹ f`."""
    system, feet = quadruped()
    rng, forces = np.random.default_rng(4), residual_forces(system, feet)
    assert np.all(system.scales.coordinates[6:] == 1)
    for q, _ in system.scales.states[:6]:
        f, residual, bias = rng.standard_normal((4, 3)), np.zeros(18), []
        for foot, own in zip(feet, f, strict=True):
            J = np.array(system.frame(foot.frame, foot.kind).jacobian(q))[:3]
            residual += J.T @ np.roll(own, -1)  # n, t1, t2 is z, x, y
            s = np.linalg.svd(J[:, 6:], compute_uv=False)
            d2 = 1e-4 * np.mean(s**2)
            bias.append(d2 / (s[2] ** 2 + d2) * np.linalg.norm(own))
        found = np.array(forces(q, residual)).reshape(4, 3)
        assert np.all(np.linalg.norm(found - f, axis=1) <= np.array(bias) + 1e-9)
        assert min(bias) < 0.01


def test_the_load_of_a_sole_is_shared_by_its_points():
    """Six joints determine the wrench of a foot, and so the sum of the forces on its corners."""
    system = system_of("humanoid")
    corners = [mb.Contact(f"{side}_foot_{k}") for side in ("left", "right") for k in (1, 2, 3, 4)]
    left, right, q = range(4), range(4, 8), system.tree.keyframes["stand"]
    f, residual = np.zeros((len(corners), 3)), np.zeros(system.nv)
    f[left[0]] = [80.0, 5.0, -3.0]  # n, t1, t2: all on one corner
    for corner, own in zip(corners, f, strict=True):
        J = np.array(system.frame(corner.frame, corner.kind).jacobian(q))[:3]
        residual += J.T @ np.roll(own, -1)
    found = np.array(residual_forces(system, corners)(q, residual)).reshape(-1, 3)
    assert found[left].sum(axis=0) == pytest.approx(f.sum(axis=0), abs=1.0)
    assert np.abs(found[left][:, 0] - 80.0).min() > 1.0, "least norm spreads it"
    assert found[right] == pytest.approx(np.zeros((4, 3)), abs=1e-9)


def test_feet_of_a_robot_in_mujoco_are_told_from_those_in_the_air():
    """Dropped, then standing, by the residual alone with a schedule that says nothing."""
    system, feet = quadruped()
    observer = momentum_observer(system, gain=100.0, rate_noise=1e-3, force_noise=0.05)
    fused = contact_probability(system, feet, residual=FootLoad(35.0, 8.0))
    plant, stand = Plant(mb.models.path("quadruped")), system.tree.keyframes["stand"]
    plant.reset(stand + np.array([0, 0, 0.05, *np.zeros(16)]))
    u, z, z_contact, wrong, touched = np.zeros(12), 0, 0, [], 0
    for _ in range(1200):
        out = observer(q=plant.q, v=plant.v, u=u, dt=plant.timestep, z=z)
        unknown = np.full(4, np.nan)
        feet_now = answer(fused, z=z_contact, schedule=unknown, q=plant.q, residual=out["residual"])
        z, z_contact = out["z_next"], feet_now["z_next"]
        forces = plant.contact_forces_at({foot.frame: foot.place for foot in feet})
        real = np.array([forces[foot.frame][0].normal for foot in feet])
        wrong.append(np.any(feet_now["mask"] != (real > 5.0)))
        touched += np.any(real > 5.0)
        u = 60 * (stand[7:] - plant.q[7:]) - 2 * plant.v[6:]
        plant.step(u)
    assert 900 < touched < 1150, "it falls for a tenth of a second"
    assert not any(wrong[:90])
    assert not any(wrong[700:])


def test_generated_c_gives_the_same(tmp_path):
    system, feet = quadruped()
    fused = contact_probability(system, feet, force=LOAD, residual=LOAD)
    in_c, rng = compiled(fused, tmp_path), np.random.default_rng(6)
    for _ in range(5):
        inputs = {
            "schedule": rng.uniform(size=4),
            "normal_force": rng.uniform(-5, 40, 4),
            "q": system.tree.keyframes["stand"] + 0.1 * rng.standard_normal(19),
            "residual": 10 * rng.standard_normal(18),
            "z": rng.uniform(size=8),
        }
        ours, theirs = answer(fused, **inputs), answer(in_c, **inputs)
        for key, value in ours.items():
            assert theirs[key] == pytest.approx(value, rel=1e-9, abs=1e-9), key


def test_wrong_arguments_are_refused():
    system, _ = quadruped()
    with pytest.raises(ProblemError, match="without contacts"):
        contact_probability(system, [], force=LOAD)
    with pytest.raises(ProblemError, match="expected 0 < swing < off <= on <= stance < 1"):
        ContactBelief(swing=0.5)
    with pytest.raises(ProblemError, match="noise = 0"):
        FootLoad(load=10.0, noise=0.0)
    world = mb.Contact("trunk", kind="body")
    with pytest.raises(ProblemError, match="no joint moves the contact 'trunk'"):
        residual_forces(system, [world])
