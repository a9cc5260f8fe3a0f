"""Consistent random states, and a rigid reference from MuJoCo's own matrices."""

import functools
from dataclasses import dataclass

import mujoco
import numpy as np
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
        return case(name, standing_quadruped(str(MODELS / "quadruped.xml")))
    return case(name, mujoco.MjModel.from_xml_path(str(MODELS / f"{name}.xml")))


def case(name: str, model: mujoco.MjModel, spread: float = 0.3) -> Case:
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return Case(name, read_mjcf(model), model, spread)


def standing_quadruped(path: str) -> mujoco.MjModel:
    """Return the quadruped with its four feet held by point connections to the world."""
    spec = mujoco.MjSpec.from_file(path)
    for foot in ("FL", "FR", "RL", "RR"):
        joined = spec.add_equality()
        joined.type = mujoco.mjtEq.mjEQ_CONNECT
        joined.objtype = mujoco.mjtObj.mjOBJ_BODY
        joined.name1, joined.name2 = f"{foot}_foot", "world"
        joined.data[:3] = spec.site(foot).pos
    return spec.compile()


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


def rigid_acceleration(case: Case, q: np.ndarray, v: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the exact rigid acceleration from MuJoCo's own M, J, bias and aref.

    On the manifold `aref = -J̇v`: position and velocity errors are zero there.
    """
    model, data = case.model, mujoco.MjData(case.model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    J = data.efc_J.reshape(-1, model.nv)[rows]
    force = f + data.qfrc_passive - data.qfrc_bias
    a_0 = np.linalg.pinv(J, RANK_TOL) @ data.efc_aref[rows]
    s, Vt = np.linalg.svd(J)[1:] if J.size else (np.zeros(0), np.eye(model.nv))
    Z = Vt[np.sum(s > RANK_TOL) :].T
    return a_0 + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (force - M @ a_0))
