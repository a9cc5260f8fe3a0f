"""Feet that creep in the soft friction of MuJoCo: a heavier quadruped with `solimp` of MJX, late.

Forces of feet against each other move nothing on rigid ground. Here they move the feet apart.
"""

from functools import cache

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import DisturbanceObserver, FrameTask, InverseDynamicsQP, PostureTask

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
