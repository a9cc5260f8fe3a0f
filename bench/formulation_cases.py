"""What the benchmark of the formulations times: mechanisms, variants, and random matrices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import mujoco
import numpy as np

from mbcasadi import models
from mbcasadi.dynamics import (
    FORMULATIONS,
    forward_dynamics,
    forward_dynamics_derivatives,
    inverse_dynamics,
)
from mbcasadi.dynamics.formulations import operations_of_root
from mbcasadi.linalg import UNROLL_LIMIT, operations
from mbcasadi.system import System

VARIANTS: dict[str, tuple[str, dict[str, str | bool]]] = {
    "limbwise": ("limbwise", {}),
    "lagrange": ("lagrange", {}),
    "lagrange, rows in order": ("lagrange", {"pivot": False}),
    "projection, M_c": ("projection", {"inertia": "M_c"}),
    "projection, M_c'": ("projection", {"inertia": "M_c_prime"}),
    "projection, M_c''": ("projection", {"inertia": "M_c_second"}),
    "virtual_mass": ("virtual_mass", {}),
    "quasi_velocity, Cholesky": ("quasi_velocity", {"root": "cholesky"}),
    "quasi_velocity, symmetric": ("quasi_velocity", {"root": "symmetric"}),
    "udwadia_kalaba, Cholesky": ("udwadia_kalaba", {"root": "cholesky"}),
    "udwadia_kalaba, symmetric": ("udwadia_kalaba", {"root": "symmetric"}),
    "null_space": ("null_space", {}),
}
"""Name → formulation and its options."""

Build = Callable[[], ca.Function]


@dataclass(frozen=True)
class Mechanism:
    """A model file of ours and the bodies on the ground.

    Attributes:
        model: name of the model.
        feet: bodies joined to the world at a point, at the site of the foot.
        soles: bodies welded to the world.
    """

    model: str
    feet: Mapping[str, str]
    soles: Sequence[str] = ()

    def spec(self) -> mujoco.MjSpec:
        """Return the model with its feet held, without contacts."""
        spec = mujoco.MjSpec.from_file(str(models.path(self.model)))
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        for body, site in self.feet.items():
            equality = _fix_to_world(spec, body, mujoco.mjtEq.mjEQ_CONNECT)
            equality.data[:3] = spec.site(site).pos
        for body in self.soles:
            _fix_to_world(spec, body, mujoco.mjtEq.mjEQ_WELD)
        return spec


MECHANISMS: dict[str, Mechanism] = {
    "four_bar": Mechanism("four_bar", {}),
    "five_bar": Mechanism("five_bar", {}),
    "spatial_loop": Mechanism("spatial_loop", {}),
    "arm_gripper": Mechanism("arm_gripper", {}),
    "quadruped on four feet": Mechanism(
        "quadruped", {f"{foot}_foot": foot for foot in ("FL", "FR", "RL", "RR")}
    ),
    "humanoid on two soles": Mechanism("humanoid", {}, ("left_foot", "right_foot")),
}


def functions(system: System, names: Sequence[str] = tuple(VARIANTS)) -> dict[str, Build]:
    """Return how to build what is timed, by name; each takes (q, v, f) or (q, v, a)."""
    builds: dict[str, Build] = {}
    for name in names:
        formulation, options = VARIANTS[name]
        keywords: dict[str, Any] = dict(options)
        builds[name] = partial(forward_dynamics, system, formulation, **keywords)
    builds["derivatives"] = partial(forward_dynamics_derivatives, system)
    builds["inverse"] = partial(inverse_dynamics, system)
    return builds


def on_matrices(name: str, n: int, m: int) -> ca.Function:
    """Return a variant on dense matrices alone: (M, h, f, A, c) → (a, f_c, lam)."""
    formulation, options = VARIANTS[name]
    equations = partial(FORMULATIONS[formulation], **options)
    count = 5 * n**3 // 3 + 2 * operations(ca.Sparsity.dense(m, n), True)
    count += operations_of_root(equations, n)
    kind: Any = ca.SX if count <= UNROLL_LIMIT else ca.MX
    inputs = {"M": kind.sym("M", n, n), "h": kind.sym("h", n), "f": kind.sym("f", n)}
    inputs |= {"A": kind.sym("A", m, n), "c": kind.sym("c", m)}
    motion = equations(*inputs.values())
    return ca.Function(
        "motion",
        list(inputs.values()),
        list(motion),
        list(inputs),
        ["a", "f_c", "lam"],
        {"cse": True},
    )


def random_matrices(n: int, m: int, count: int) -> np.ndarray:
    """Return (count, ...) random inputs of `on_matrices`, one problem in each row, by columns."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(count):
        X = rng.standard_normal((n, n))
        parts = [X @ X.T + np.eye(n), rng.standard_normal(2 * n)]
        parts += [rng.standard_normal((m, n)), rng.standard_normal(m)]
        rows.append(np.concatenate([part.ravel(order="F") for part in parts]))
    return np.array(rows)


def random_states(system: System, spread: float, count: int) -> np.ndarray:
    """Return (count, nq + 2 nv) states and forces, spread about the authored pose."""
    rng = np.random.default_rng(0)
    assert system.tree is not None
    rows = []
    for _ in range(count):
        q = system.integrate(system.tree.q0, spread * rng.standard_normal(system.nv))
        rows.append(np.concatenate([q.full().ravel(), rng.standard_normal(2 * system.nv)]))
    return np.array(rows)


def _fix_to_world(spec: mujoco.MjSpec, body: str, kind: Any) -> Any:
    equality = spec.add_equality()
    equality.type, equality.objtype = kind, mujoco.mjtObj.mjOBJ_BODY
    equality.name1, equality.name2 = body, "world"
    return equality
