"""Random poses of free bodies."""

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.system.closed_poses import closed_poses
from mbcasadi.system.natural_sizes import natural_sizes


def test_free_bodies_turn_about_any_axis():
    system, rng = mb.read_mjcf(models.path("quadrotor")), np.random.default_rng(0)
    size = natural_sizes(system)
    poses = np.array([q for _ in range(20) for q in closed_poses(system, rng, size)])
    axes = poses[:, 4:7] / np.linalg.norm(poses[:, 4:7], axis=1)[:, None]
    assert np.linalg.eigvalsh(axes.T @ axes / len(axes)).min() > 0.1  # 1/3 where all are as likely
