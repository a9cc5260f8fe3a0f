"""Feet of legs with five joints stand on heel and toe, which leaves the base its motion."""

import re

import numpy as np
import pytest
from scipy.linalg import null_space

import mbcasadi as mb
from mbcasadi.system import contacts_of
from mbcasadi.validation.spec.short_legs import heels_and_toes

BENT = {"hip_pitch": -0.3, "knee": 0.6, "ankle_pitch": -0.3}  # rad
TURNED = {"left_hip_yaw": 0.05, "right_hip_yaw": 0.02}  # rad, of feet that are not parallel
POSE = TURNED | {f"{side}_{name}": q for side in ("left", "right") for name, q in BENT.items()}
FREE = 0.05  # least singular value of motions of the base for each rate of joints


def base_motions(text):
    """Return all contacts of the feet, those chosen, and the base's singular values with both."""
    system = mb.read_mjcf(text)
    tree = system.tree
    q = np.array(next(iter(tree.keyframes.values()), tree.q0)).ravel()
    robot = mb.describe(system, q)
    for joint in tree.joints:
        if joint.name in POSE:
            q[joint.qpos] = POSE[joint.name]
    every = contacts_of(system, ground="floor", q=q)
    chosen = heels_and_toes(robot, every, q)
    least = []
    for contacts in (every, chosen):
        free = null_space(np.vstack([np.array(each.jacobian(q)) for each in contacts]), rcond=1e-9)
        least.append(np.linalg.svd(free[:6], compute_uv=False)[:6].min())
    return every, chosen, least


def test_a_base_on_short_legs_can_move_in_all_directions():
    text = mb.models.path("humanoid").read_text()
    short = re.sub(r"<(joint|motor)[^>]*_ankle_roll[^>]*/>", "", text)
    short = re.sub(r"<key .*?/>", "", short, flags=re.DOTALL)
    every, chosen, (before, after) = base_motions(short)
    assert (len(every), len(chosen)) == (8, 4)
    assert before < 1e-6
    assert after > FREE


def test_legs_that_lay_their_feet_flat_keep_all_points():
    every, chosen, _ = base_motions(mb.models.path("humanoid").read_text())
    assert tuple(each.name for each in chosen) == tuple(each.name for each in every)


@pytest.mark.parametrize("name", ["quadruped", "planar_biped"])
def test_point_feet_and_planar_robots_keep_all_points(name):
    system = mb.read_mjcf(mb.models.path(name))
    q = np.array(next(iter(system.tree.keyframes.values()), system.tree.q0)).ravel()
    every = contacts_of(system, q=q)
    assert heels_and_toes(mb.describe(system, q), every, q) == tuple(every)
