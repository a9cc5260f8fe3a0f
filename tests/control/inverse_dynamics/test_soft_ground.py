"""Plain contacts on ground that is soft in MuJoCo: feet that creep, a floor that gives way."""

from functools import cache

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.loops_in_mujoco import ticks
from support.mechanisms_of_control import system_of

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import DisturbanceObserver, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.inverse_dynamics.contacts.creeping import SHARE
from mbcasadi.plant import Plant

PERIOD = 0.002  # s
TICKS, SETTLED = 750, 250
FEET = ("FL", "FR", "RL", "RR")
SOLES = tuple(f"{side}_foot_{k}" for side in ("left", "right") for k in (1, 2, 3, 4))


@cache
def soft_quadruped():
    """Return a model whose feet are soft, as `0.015 1 0.031` of MJX, on a floor as soft."""
    spec = mujoco.MjSpec.from_file(str(models.path("quadruped")))
    spec.option.impratio, spec.option.cone = 1, mujoco.mjtCone.mjCONE_PYRAMIDAL
    spec.option.timestep = PERIOD
    for geom in spec.geoms:
        geom.solimp, geom.solref = [0.015, 1, 0.031, 0.5, 2], [0.02, 1]
    return spec.compile()


def law_of(system=None, feet=None, posture=PostureTask(weight=1e-3), **options):  # noqa: B008
    system = system or mb.read_mjcf(soft_quadruped())
    feet = feet or [mb.Contact(foot, friction=0.6, sides=4) for foot in FEET]
    observer = DisturbanceObserver(bandwidth=5.0)
    options |= {"observer": observer, "contact_damping": 20.0, "period": PERIOD, "delay": 1}
    trunk = FrameTask("trunk", kind="body", kp=100.0, weight=100.0)
    return InverseDynamicsQP(system, [trunk, posture], feet, **options)


def stance_change(law):
    """Return how far the feet move apart within a second while the robot stands, m."""
    plant, q0 = Plant(soft_quadruped(), perturb={"mass": 0.1}), law.system.tree.keyframes["stand"]
    plant.reset(q0)
    stance, rest = [], {"mask": np.ones(4)}
    for out in ticks(law, plant, TICKS, law.reference_at(q0), delay=1, **rest):
        assert out["status"] == 0
        stance.append(np.ptp([plant.frame_position(foot) for foot in FEET], axis=0)[:2])
    return np.abs(stance[-1] - stance[SETTLED]).max()


@pytest.mark.long
def test_feet_do_not_slide_apart():
    """They do so by a decimetre a second where forces along the ground have no weight."""
    ours = law_of()
    assert "FL: " in ours.controller.notes["creeping contacts"]
    assert stance_change(law_of(force_weight=0.0)) > 0.1
    assert stance_change(ours) < 0.01


def test_the_weight_is_a_share_of_the_tasks_on_what_creeps():
    weights = law_of().contact_weights.reshape(4, 3)
    mass = sum(body.mass for body in law_of().system.tree.bodies)
    assert_allclose(weights, np.tile([0, 1, 1], (4, 1)) * 0.01 * 100.0 / mass**2)
    in_levels = law_of(levels=[["trunk"], ["posture"]])
    assert_allclose(in_levels.contact_weights, weights.ravel())


def test_stiff_feet_have_no_weight():
    system = mb.read_mjcf(models.path("quadruped"))
    law = InverseDynamicsQP(system, [PostureTask()], [mb.Contact(foot) for foot in FEET])
    assert not np.any(law.contact_weights)
    assert "creeping contacts" not in law.controller.notes


@cache
def humanoid():
    """Return a model whose soles have the friction of MuJoCo's defaults."""
    spec = mujoco.MjSpec.from_file(str(models.path("humanoid")))
    spec.option.impratio, spec.option.cone = 1, mujoco.mjtCone.mjCONE_PYRAMIDAL
    spec.option.timestep = PERIOD
    for geom in spec.geoms:
        geom.solref = [0.02, 1]
    return spec.compile()


def standing_humanoid(system, **options):
    feet = [mb.Contact(name, friction=0.7, sides=4) for name in SOLES]
    tasks = [FrameTask("pelvis", kind="body", kp=100.0), PostureTask(weight=1e-3)]
    options |= {"contact_damping": 20.0, "period": PERIOD, "delay": 1}
    return InverseDynamicsQP(system, tasks, feet, **options)


@pytest.mark.long
def test_soles_do_not_turn_against_each_other():
    """They do so at rest, where forces along the ground have no weight."""
    system = mb.read_mjcf(humanoid())
    turns, along = {}, SHARE / sum(body.mass for body in system.tree.bodies) ** 2
    for weight in (0.0, along):
        law = standing_humanoid(system, force_weight=[0.0, weight, weight])
        plant = Plant(humanoid())
        plant.reset(q0 := system.tree.keyframes["stand"])
        for out in ticks(law, plant, 2 * TICKS, law.reference_at(q0), mask=np.ones(8), delay=1):
            assert out["status"] == 0
        heel, toe = (plant.frame_position(f"left_foot_{k}") for k in (3, 1))
        turns[weight] = abs(np.arctan2(*(toe - heel)[1::-1]))
    assert turns[0.0] > 2e-3
    assert turns[along] < 2e-4


DEEP, RATE = 0.04, 2 * np.pi * 0.5  # s, m, rad/s
SAG = 5e-3  # m, that the floor gives way at least
ERROR = 1e-3  # m


@pytest.mark.long
def test_a_quadruped_on_a_floor_that_gives_way_follows_its_height():
    """`solref="0.05 1"` is a resonance of 20 rad/s, twice the bandwidth of the task."""
    system = system_of("quadruped")
    contacts = mb.contacts_of(system, ground="floor")
    feet = [contact.as_contact(sides=4) for contact in contacts]
    law = law_of(system, feet, PostureTask(kp=50.0, weight=1e-3))
    spec = mujoco.MjSpec.from_file(str(models.path("quadruped")))
    for geom in spec.geoms:
        geom.solref = [0.05, 1.0]
    plant = Plant(spec, timestep=PERIOD, perturb={"mass": 0.1})
    plant.reset(system.tree.keyframes["stand"])
    rest, height, errors, gaps = law.reference_at(plant.q), plant.q[2], [], []

    def wave(t):
        return (
            DEEP
            / 2
            * np.array([1 - np.cos(RATE * t), RATE * np.sin(RATE * t), RATE**2 * np.cos(RATE * t)])
        )

    def reference(t):
        ref = rest.copy()
        for quantity, share in zip(("position", "velocity", "acceleration"), wave(t), strict=True):
            ref[law.reference_slices[f"trunk.{quantity}"]] -= [0.0, 0.0, share]
        return ref

    for k, out in enumerate(ticks(law, plant, 1000, reference, delay=1)):
        assert out["status"] == 0
        errors.append(plant.q[2] - height + wave((k + 1) * PERIOD)[0])
        gaps.append(float(contacts[0].gap(plant.q)[0]))
    assert np.max(np.abs(errors[500:])) < ERROR
    assert np.mean(gaps[500:]) < -SAG
