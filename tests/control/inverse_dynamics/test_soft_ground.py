"""Plain contacts on ground that is soft in MuJoCo: feet that creep, a floor that gives way."""

from functools import cache

import mujoco
import numpy as np
from support.mechanisms_of_control import system_of

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import DisturbanceObserver, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.plant import Plant

PERIOD = 0.002  # s

TICKS, SETTLED = 750, 250

FEET = ("FL", "FR", "RL", "RR")


@cache
def soft_quadruped():
    """Return a model whose feet are soft, as `0.015 1 0.031` of MJX, on a floor as soft."""
    spec = mujoco.MjSpec.from_file(str(models.path("quadruped")))
    spec.option.impratio, spec.option.cone = 1, mujoco.mjtCone.mjCONE_PYRAMIDAL
    spec.option.timestep = PERIOD
    for geom in spec.geoms:
        geom.solimp, geom.solref = [0.015, 1, 0.031, 0.5, 2], [0.02, 1]
    return spec.compile()


def law_of(**options):
    system = mb.read_mjcf(soft_quadruped())
    tasks = [FrameTask("trunk", kind="body", kp=100.0, weight=100.0), PostureTask(weight=1e-3)]
    feet = [mb.Contact(foot, friction=0.6, sides=4) for foot in FEET]
    return InverseDynamicsQP(
        system,
        tasks,
        feet,
        observer=DisturbanceObserver(bandwidth=5.0),
        contact_damping=20.0,
        period=PERIOD,
        delay=1,
        **options,
    )


def stance_change(law):
    """Return how far the feet move apart within a second while the robot stands, m."""
    model = soft_quadruped()
    data = mujoco.MjData(model)
    data.qpos[:] = q0 = np.array(law.system.tree.keyframes["stand"])
    model.body_mass[1:] *= 1.1
    inputs, z = {"ref": law.reference_at(q0), "mask": np.ones(4)}, law.z0
    u, stance = np.zeros(law.system.nu), []
    for _ in range(TICKS):
        out = law.function(q=data.qpos, v=data.qvel, z=z, **inputs)
        data.ctrl, u, z = u, np.array(out["u"]).ravel(), out["z_next"]
        assert int(out["status"]) == 0
        mujoco.mj_step(model, data)
        stance.append(np.ptp([data.site(foot).xpos for foot in FEET], axis=0)[:2])
    model.body_mass[1:] /= 1.1
    return np.abs(stance[-1] - stance[SETTLED]).max()


def test_feet_do_not_slide_apart():
    """They do so by a decimetre a second where forces along the ground have no weight."""
    ours = law_of()
    assert "FL: " in ours.controller.notes["creeping contacts"]
    assert stance_change(law_of(force_weight=0.0)) > 0.1
    assert stance_change(ours) < 0.01


def test_the_weight_is_a_share_of_the_tasks_on_what_creeps():
    weights = law_of().contact_weights.reshape(4, 3)
    mass = sum(body.mass for body in law_of().system.tree.bodies)
    np.testing.assert_allclose(weights, np.tile([0, 1, 1], (4, 1)) * 0.01 * 100.0 / mass**2)
    in_levels = law_of(levels=[["trunk"], ["posture"]])
    assert np.unique(in_levels.contact_weights).tolist() == [weights.max()]


def test_stiff_feet_have_no_weight():
    system = mb.read_mjcf(models.path("quadruped"))
    law = InverseDynamicsQP(system, [PostureTask()], [mb.Contact(foot) for foot in FEET])
    assert not np.any(law.contact_weights)
    assert "creeping contacts" not in law.controller.notes


DEEP, RATE = 0.04, 2 * np.pi * 0.5  # s, m, rad/s

SAG = 5e-3  # m, that the floor gives way at least

ERROR = 1e-3  # m


def test_a_quadruped_on_a_floor_that_gives_way_follows_its_height():
    """`solref="0.05 1"` is a resonance of 20 rad/s, twice the bandwidth of the task."""
    system = system_of("quadruped")
    contacts = mb.contacts_of(system, ground="floor")
    law = InverseDynamicsQP(
        system,
        [
            FrameTask("trunk", kind="body", kp=100.0, weight=100.0),
            PostureTask(kp=50.0, weight=1e-3),
        ],
        [contact.as_contact(sides=4) for contact in contacts],
        observer=DisturbanceObserver(bandwidth=5.0),
        contact_damping=20.0,
        period=PERIOD,
        delay=1,
    )
    spec = mujoco.MjSpec.from_file(str(models.path("quadruped")))
    for geom in spec.geoms:
        geom.solref = [0.05, 1.0]
    plant = Plant(spec, timestep=PERIOD, perturb={"mass": 0.1})
    plant.reset(np.array(system.tree.keyframes["stand"]).ravel())
    rest, u = law.reference_at(plant.q), np.zeros(system.nu)
    height, z, errors, gaps = plant.q[2], law.z0, [], []
    for k in range(1000):
        ref, phase = rest.copy(), RATE * k * PERIOD
        wave = 1 - np.cos(phase), RATE * np.sin(phase), RATE**2 * np.cos(phase)
        for quantity, share in zip(("position", "velocity", "acceleration"), wave, strict=True):
            ref[law.reference_slices[f"trunk.{quantity}"]] -= [0.0, 0.0, DEEP / 2 * share]
        out = law.function(q=plant.q, v=plant.v, ref=ref, mask=np.ones(4), z=z)
        assert float(out["status"]) == 0
        errors.append(plant.q[2] - height + DEEP / 2 * wave[0])
        gaps.append(float(contacts[0].gap(plant.q)[0]))
        plant.step(u)
        u, z = np.array(out["u"]).ravel(), out["z_next"]
    assert np.max(np.abs(errors[500:])) < ERROR
    assert np.mean(gaps[500:]) < -SAG
