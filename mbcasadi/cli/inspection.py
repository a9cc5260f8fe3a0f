"""What a model holds, in numbers: sizes, coverage, limits, ranks, operation counts."""

from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.system import System

Array = NDArray[np.float64]

RANK_TOL = 1e-6  # singular values below this fraction of the largest count as zero
CLOSED = 1e-9  # residual of phi, m or rad, below which a pose counts as on the manifold
NEWTON_STEPS = 60
COUNTED = (
    ("M", "mass_matrix"),
    ("h", "bias_force"),
    ("phi", "constraint"),
    ("A", "constraint_jacobian"),
    ("c", "constraint_bias"),
)
NO_OPERATION = (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT)


@dataclass(frozen=True)
class Inspection:
    """Everything that `mbcasadi inspect` prints.

    Attributes:
        name: of the model.
        sizes: nq, nv, nu, na, nc.
        coverage: (treatment, feature, advice) of each feature.
        warnings: of MuJoCo's compiler.
        controls: (name, lowest u, highest u, lowest force, highest force) of each actuator.
        joints: (name, lowest, highest) of each slide and hinge joint.
        rows: names of the constraints, one for each row.
        rank_authored: rank of A at the authored pose, and whether that pose is closed.
        ranks: ranks of A at random poses that were moved onto the manifold.
        poses: random poses tried; those that Newton's method did not close are left out.
        operations: operation counts of M, h, phi, A, c.
    """

    name: str
    sizes: dict[str, int]
    coverage: list[tuple[str, str, str]]
    warnings: list[str]
    controls: list[tuple[str, float, float, float, float]]
    joints: list[tuple[str, float, float]]
    rows: list[str]
    rank_authored: int
    authored_residual: float
    ranks: list[int]
    poses: int
    operations: dict[str, int] = field(default_factory=dict)

    @property
    def rank_in_words(self) -> str:
        """`7 rows, rank 5 at the authored pose; rank 5 at 4 random closed poses`."""
        nc = self.sizes["nc"]
        if nc == 0:
            return "no constraints"
        closed = "" if self.authored_residual < CLOSED else " (not closed)"
        words = f"{nc} rows, rank {self.rank_authored} at the authored pose{closed}"
        if not self.ranks:
            return f"{words}; none of {self.poses} random poses could be closed"
        found = " or ".join(str(rank) for rank in sorted(set(self.ranks)))
        return f"{words}; rank {found} at {len(self.ranks)} random closed poses"


def inspect_system(system: System, poses: int = 5, seed: int = 0) -> Inspection:
    """Collect the numbers of a system that was read from a model."""
    limits = system.limits
    assert system.tree is not None  # `read_mjcf` always gives one
    authored = system.tree.q0
    closed = [
        q
        for q in random_poses(system, poses, seed)
        if np.max(np.abs(_column(system.constraint(q))), initial=0.0) < CLOSED
    ]
    return Inspection(
        name=system.name,
        sizes={key: getattr(system, key) for key in ("nq", "nv", "nu", "na", "nc")},
        coverage=[(i.treatment, i.feature, i.advice) for i in system.coverage.items],
        warnings=list(system.coverage.warnings),
        controls=[
            (name, float(ctrl[0]), float(ctrl[1]), float(force[0]), float(force[1]))
            for name, ctrl, force in zip(
                system.actuator_names, limits.ctrl, limits.force, strict=True
            )
        ],
        joints=[
            (name, float(ends[0]), float(ends[1]))
            for name, ends in zip(limits.joint_names, limits.joint, strict=True)
        ],
        rows=list(system.constraint_names),
        rank_authored=jacobian_rank(system, authored),
        authored_residual=float(np.max(np.abs(_column(system.constraint(authored))), initial=0.0)),
        ranks=[jacobian_rank(system, q) for q in closed],
        poses=poses,
        operations={letter: operations(system.member(name)) for letter, name in COUNTED},
    )


def random_poses(system: System, count: int, seed: int) -> list[Array]:
    """Return random poses, moved towards `phi(q) = 0` by Gauss-Newton steps.

    A pose that does not close is returned where the steps ended.
    """
    assert system.tree is not None
    rng = np.random.default_rng(seed)
    return [close(system, model.random_state(system.tree, rng)[0]) for _ in range(count)]


def close(system: System, q: Array) -> Array:
    """Return `q ⊕ Σ dv` with `A dv = -phi`, in the least-squares sense at each step."""
    for _ in range(NEWTON_STEPS if system.nc else 0):
        phi = _column(system.constraint(q))
        if np.max(np.abs(phi)) < 0.01 * CLOSED:
            break
        A = np.asarray(system.constraint_jacobian(q))
        dv = np.linalg.lstsq(A, -phi, rcond=RANK_TOL)[0]
        q = _column(system.integrate(q, dv / max(1.0, float(np.linalg.norm(dv)))))
    return q


def jacobian_rank(system: System, q: Array) -> int:
    """Return the rank of A(q); rows are scaled to length 1 first, vanishing rows apart."""
    if system.nc == 0:
        return 0
    A = np.asarray(system.constraint_jacobian(q))
    length = np.linalg.norm(A, axis=1, keepdims=True)
    scaled = A / np.where(length > RANK_TOL, length, 1.0)
    return int(np.linalg.matrix_rank(scaled, tol=RANK_TOL * np.sqrt(system.nc)))


def operations(function: ca.Function) -> int:
    """Return the number of scalar operations, those of called Functions included."""
    count = 0
    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        if code == ca.OP_CALL:
            count += operations(function.instruction_MX(k).which_function())
        elif code not in NO_OPERATION:
            count += 1
    return count


def _column(value: ca.DM) -> Array:
    return np.asarray(value, dtype=float).ravel()
