"""A plain contact on soft ground: the law holds it rigid, MuJoCo's floor gives way."""

import mujoco
import numpy as np
from mechanisms import system_of

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import DisturbanceObserver, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.plant import Plant

PERIOD, DEEP, RATE = 0.002, 0.04, 2 * np.pi * 0.5  # s, m, rad/s
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
