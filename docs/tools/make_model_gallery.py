"""Draw docs/images/models.png and print the counts in docs/results/models-gallery.md.

Run it from the project's folder: `python docs/tools/make_model_gallery.py`. `--counts` prints the
tables only; the picture needs a renderer (EGL or OSMesa).
"""

import sys
from importlib import import_module
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import casadi as ca
import matplotlib.pyplot as plt
import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.plant.draw import draw_frames

DOCS = Path(__file__).resolve().parents[1]
OUT = DOCS / "images" / "models.png"
COLUMNS = 4
INDEPENDENT = 1e-7  # singular values below are rounding: rows that repeat others
SEED = 0
FALLING = {"flexible_slider_crank": 0.1}  # s of free motion before the picture

sys.path.insert(0, str(DOCS.parent / "examples"))

TWINS = (
    "particle_on_circle",
    "slider_crank",
    "prr_arm",
    "two_mass_spring",
    "cooperating_robots",
    "five_bar",
    "planar_3rrr",
    "parallelogram",
    "spatial_loop",
    "topology_switch",
    "flexible_slider_crank",
    "flexible_slider_crank_modes",
    "chaplygin_sleigh",
    "rolling_disc",
    "driven_pendulum",
    "appell_hamel",
    "constant_speed",
    "heavy_top",
)


def authored(model: mujoco.MjModel) -> np.ndarray:
    """Return the configuration to show: the first key frame, or else `qpos0`."""
    return model.key_qpos[0] if model.nkey else model.qpos0


def fallen(model: mujoco.MjModel, duration: float) -> np.ndarray:
    """Return the configuration after `duration`, s, of free motion."""
    data = mujoco.MjData(model)
    while data.time < duration:
        mujoco.mj_step(model, data)
    return np.array(data.qpos)


def count(system: mb.System, q: np.ndarray) -> str:
    """Return "coordinates | rows | rank | freedoms" of a system at `q`."""
    A = system.constraint_jacobian
    rng = np.random.default_rng(SEED)
    known = {"q": q, "t": 0.0}
    given = [known.get(name, rng.normal(size=A.size1_in(name))) for name in A.name_in()]
    rows = np.array(ca.DM(A(*given)))
    rank = np.linalg.matrix_rank(rows, tol=INDEPENDENT) if rows.size else 0
    return f"{system.nv} | {system.nc} | {rank} | {system.nv - rank}"


def counts() -> list[str]:
    """Return one line for each model and each twin."""
    lines = ["model | coordinates | rows | rank | freedoms"]
    for name in models.names():
        system = mb.read_mjcf(models.path(name), switchable=True)
        lines.append(f"{name} | {count(system, system.tree.q0)}")
    lines += ["", "twin | coordinates | rows | rank | freedoms"]
    for name in TWINS:
        twin = import_module(f"twins.{name}")
        system = twin.system()
        q = np.array(getattr(twin, "START", np.full(system.nq, 0.3)))
        lines.append(f"{name} | {count(system, q)}")
    return lines


def frequencies() -> str:
    """Return how far the first two bending frequencies of the rod in pieces are from the beam's."""
    pieces = import_module("twins.flexible_slider_crank")
    modes = import_module("twins.flexible_slider_crank_modes")
    beam, chain = (
        pieces.bending_frequencies(rod.system(gravity=0.0), rod.START)[:2]
        for rod in (modes, pieces)
    )
    errors = ", ".join(f"{100 * abs(error):.2f} %" for error in chain / beam - 1)
    return f"bending frequencies of the rod in pieces, error: {errors}"


def draw() -> None:
    """Draw all models, each from its own camera, on one sheet."""
    names = models.names()
    rows = -(-len(names) // COLUMNS)
    figure, grid = plt.subplots(rows, COLUMNS, figsize=(2.6 * COLUMNS, 2.15 * rows))
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, name in zip(grid.flat, names, strict=False):
        model = mujoco.MjModel.from_xml_path(str(models.path(name)))
        q = fallen(model, FALLING[name]) if name in FALLING else authored(model)
        frames = draw_frames(model, q, width=480, height=360)
        if frames.images is None:
            raise SystemExit(frames.reason)
        axes.imshow(frames.images[0])
        axes.set_title(name, fontsize=9, loc="left", color="#333333")
    figure.tight_layout()
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    sys.stdout.write("\n".join([*counts(), "", frequencies()]) + "\n")
    if "--counts" not in sys.argv:
        draw()
