"""Consistent random states of our models."""

import functools
from dataclasses import dataclass

import mujoco
import numpy as np
from support.constrained_mechanisms import FEET, standing
from support.corpora import ROOT

from mbcasadi.system import System, read_mjcf

MODELS = ROOT / "mujoco_models"
RANK_TOL = 1e-8  # of the numerical references: singular values below it are zero


@dataclass(frozen=True)
class Case:
    """A system, the MuJoCo model that it was read from, and how far states are spread."""

    name: str
    system: System
    model: mujoco.MjModel
    spread: float


@functools.cache
def the_case(name: str) -> Case:
    """Return one of our models, or the quadruped on its four feet."""
    if name == "standing_quadruped":
        return case(name, standing("quadruped", FEET).compile())
    return case(name, mujoco.MjModel.from_xml_path(str(MODELS / f"{name}.xml")))


def case(name: str, model: mujoco.MjModel, spread: float = 0.3) -> Case:
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return Case(name, read_mjcf(model), model, spread)


def consistent_state(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return (q, v) with phi = 0 and A v = 0, found by Newton steps of minimum norm."""
    system = case.system
    for _ in range(100):
        q = system.integrate(system.tree.q0, case.spread * rng.standard_normal(system.nv))
        for _ in range(60):
            A = system.constraint_jacobian(q).full()
            step = -np.linalg.pinv(A, RANK_TOL) @ system.constraint(q).full().ravel()
            q = system.integrate(q, step)
            if np.linalg.norm(step) < 1e-15:
                break
        if np.linalg.norm(system.constraint(q).full()) < 1e-13:
            v = null_projector(system.constraint_jacobian(q).full()) @ rng.standard_normal(
                system.nv
            )
            return q.full().ravel(), v
    raise AssertionError(f"{case.name}: no consistent state was found")


def null_projector(A: np.ndarray) -> np.ndarray:
    return np.eye(A.shape[1]) - np.linalg.pinv(A, RANK_TOL) @ A
