"""What `DistanceLimits()` keeps apart, and its cost in a tick of a robot's exported controller.

    python -m robots.distances ur5e.xml anymal_c.xml

The tick holds the pose of the first body that moves of a robot that floats, else of the last one,
near the first keyframe. Both controllers take turns; the smallest medians are given.
"""

import argparse
import os
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

from pathlib import Path

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.codegen import CProject, export_c
from mbcasadi.control import DistanceLimits, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.model.geometry import mesh_points

FLAGS = ("-O3", "-march=native")
STATES, TURNS = 400, 4
LIMITS = DistanceLimits()
AWAY = 0.1  # rad, m and their rates: standard deviation of the states


def measure(path: Path) -> str:
    """Return a line of figures of one robot."""
    model = mujoco.MjModel.from_xml_path(str(path))
    system = mb.read_mjcf(path)
    q0 = model.key_qpos[0] if model.nkey else system.tree.q0
    floats = model.njnt and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    body = model.body(1 if floats else model.nbody - 1).name
    tasks = [FrameTask(body, kind="body"), PostureTask(kp=10.0, weight=1e-2)]
    leaves = [i for i in range(1, model.nbody) if i not in model.body_parentid]
    feet = [mb.Contact(model.body(i).name, kind="body") for i in leaves] if floats else []
    rng = np.random.default_rng(0)
    steps, v = AWAY * rng.normal(size=(2, STATES, system.nv))
    q = np.array([np.array(system.integrate(q0, step)).ravel() for step in steps])
    medians: dict[bool, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        projects: dict[bool, tuple[CProject, dict[str, np.ndarray]]] = {}
        for limited in (False, True):
            limits = LIMITS if limited else None
            law = InverseDynamicsQP(system, tasks, feet, period=0.002, distance_limits=limits)
            ref = np.array(law.reference_at(q0)).ravel()
            inputs = {"q": q, "v": v, "ref": ref, "mask": np.ones(len(feet))}
            projects[limited] = (export_c(law, Path(folder) / f"law{limited}"), inputs)
        for _ in range(TURNS):
            for limited, (project, inputs) in projects.items():
                seconds = np.median(project.time(inputs, 1, flags=FLAGS).seconds)
                medians[limited] = min(medians.get(limited, np.inf), 1e6 * float(seconds))
    kept = LIMITS.kept(system, feet)
    pairs = f"{len(kept.pairs)} of {len(kept.pairs) + len(kept.left_out)} pairs kept apart"
    meshes = [mesh_points(geom.points) for geom in system.tree.geoms if len(geom.points)]
    of_meshes = ""
    if meshes:
        count, excess = max(len(m.points) for m in meshes), max(m.radius for m in meshes)
        of_meshes = f", meshes by {count} points at most, larger by {1e3 * excess:.1f} mm at most"
    return (
        f"{path}: {pairs}{of_meshes}; "
        f"tick {medians[False]:.1f} us, with distances {medians[True]:.1f} us"
    )


def main() -> None:
    """Measure the robots that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    for path in parser.parse_args().models:
        print(measure(path) if path.exists() else f"{path}: no such file")


if __name__ == "__main__":
    main()
