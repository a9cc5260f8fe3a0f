"""A model in numbers: kind of robot, sizes, coverage, limits, frames, feet, ranks, operations."""

from dataclasses import asdict, dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.anatomy import RobotDescription, describe
from mbcasadi.anatomy.links import standing
from mbcasadi.anatomy.possible_feet import possible_feet
from mbcasadi.codegen.count import operations
from mbcasadi.system import Redundancy, System, redundancy
from mbcasadi.system.actuator_kinds import actuator_kinds

Array = NDArray[np.float64]

RANK_TOL = 1e-6  # singular values below this fraction of the largest count as zero
NEARLY_ZERO = 1e-3  # one between these two fractions: the pose is near a singular one
CLOSED = 1e-9  # residual of phi, m or rad, below which a pose counts as on the manifold
NEWTON_STEPS = 60
LONGEST_STEP = 1.0  # rad or m, of one Newton step
Row = dict[str, Any]
CONTROL = ("name", "u_min", "u_max", "force_min", "force_max")
FOOT = ("geom", "shape", "body", "lowest", "friction")
COUNTED = (
    ("M", "mass_matrix"),
    ("h", "bias_force"),
    ("phi", "constraint"),
    ("A", "constraint_jacobian"),
    ("c", "constraint_bias"),
)


@dataclass(frozen=True)
class Ranks:
    """Ranks of A.

    Attributes:
        rows: number of rows.
        authored: how the rows depend on each other at the initial pose.
        random: ranks at random poses on the manifold.
        nearly_singular: closed poses with an ambiguous rank, not contained in `random`.
        tried: number of random poses; those that Newton's method did not close are left out.
    """

    rows: int
    authored: Redundancy
    random: tuple[int, ...]
    nearly_singular: int
    tried: int

    @property
    def text(self) -> str:
        """`7 rows, rank 5: rows 3 and 6 repeat others here (initial pose); rank 5 at ...`."""
        if self.rows == 0:
            return "no constraints"
        gap = self.authored.residual
        open_by = "" if gap < CLOSED else f", open by {gap:.1e}"
        authored = f"{self.authored.in_words} (initial pose{open_by})"
        near = f"; {self.nearly_singular} near a singular pose" if self.nearly_singular else ""
        if not self.random:
            return f"{authored}; none of {self.tried} random poses could be closed{near}"
        ranks = " or ".join(str(rank) for rank in sorted(set(self.random)))
        return f"{authored}; rank {ranks} at {len(self.random)} random closed poses{near}"


@dataclass(frozen=True)
class Inspection:
    """The output of `mbcasadi inspect`.

    Attributes:
        name: of the model.
        robot: what it is; None where the model's actuators or constraints are refused.
        sizes: nq, nv, nu, na, nc.
        coverage: treatment, feature and advice of each feature.
        warnings: of MuJoCo's compiler.
        controls: name, lowest and highest u and force of each actuator.
        joints: name, lowest and highest of each slide and hinge joint.
        actuators: names by kind: motor, position, velocity, intvelocity, damper, muscle, general.
        frames: kind, name and body of the sites and bodies that tasks and contacts can name.
        feet: geom, shape, body, lowest point in m and friction of the geoms that could be feet.
        keyframes: names of the key frames.
        rows: names of the constraints, one for each row.
        ranks: of the constraint Jacobian, None where the model's constraints are refused.
        operations: of M, h, phi, A, c; None for a member that is refused.
    """

    name: str
    robot: RobotDescription | None
    sizes: dict[str, int]
    coverage: list[Row]
    warnings: list[str]
    controls: list[Row]
    joints: list[Row]
    actuators: dict[str, list[str]]
    frames: list[Row]
    feet: list[Row]
    keyframes: list[str]
    rows: list[str]
    ranks: Ranks | None
    operations: dict[str, int | None]

    def to_dict(self) -> dict[str, object]:
        """Return all fields as plain data."""
        robot = None if self.robot is None else self.robot.text
        ranks = None if self.ranks is None else self.ranks.text
        return asdict(self) | {"robot_text": robot, "rank_text": ranks}


def inspect_system(system: System) -> Inspection:
    """Return the numbers of a system that was read from a model."""
    limits, tree = system.limits, system.tree
    assert tree is not None  # `read_mjcf` always gives one
    controls = zip(system.actuator_names, limits.ctrl, limits.force, strict=True)
    has_ranks = _available(system, "constraint") and _available(system, "constraint_jacobian")
    return Inspection(
        name=system.name,
        robot=describe(system) if has_ranks and _available(system, "actuation") else None,
        sizes={key: getattr(system, key) for key in ("nq", "nv", "nu", "na", "nc")},
        coverage=[
            {"treatment": i.treatment, "feature": i.feature, "advice": i.advice}
            for i in system.coverage.items
        ],
        warnings=list(system.coverage.warnings),
        controls=[
            dict(zip(CONTROL, (name, *map(float, (*u, *force))), strict=True))
            for name, u, force in controls
        ],
        joints=[
            {"name": name, "min": float(low), "max": float(high)}
            for name, (low, high) in zip(limits.joint_names, limits.joint, strict=True)
        ],
        actuators={kind: list(names) for kind, names in actuator_kinds(system).items()},
        frames=[
            {"kind": frame.kind, "name": frame.name, "body": tree.bodies[frame.body].name}
            for kind in ("site", "body")
            for frame in tree.frames
            if frame.kind == kind
        ],
        feet=[
            dict(zip(FOOT, (f.geom, f.kind, f.body, f.lowest, f.friction), strict=True))
            for f in possible_feet(standing(tree))
        ],
        keyframes=list(tree.keyframes),
        rows=list(system.constraint_names),
        ranks=ranks_of(system) if has_ranks else None,
        operations={
            letter: operations(system.member(name)) if _available(system, name) else None
            for letter, name in COUNTED
        },
    )


def _available(system: System, member: str) -> bool:
    return system.coverage.refusal(member) is None


def ranks_of(system: System, poses: int = 5, seed: int = 0) -> Ranks:
    """Return the ranks of a system that was read from a model."""
    assert system.tree is not None  # `read_mjcf` always gives one
    rng = np.random.default_rng(seed)
    random_poses = [
        close_configuration(system, model.random_state(system.tree, rng)[0]) for _ in range(poses)
    ]
    closed = [q for q in random_poses if residual(system, q) < CLOSED]
    clear = [q for q in closed if not nearly_singular(system, q)]
    return Ranks(
        rows=system.nc,
        authored=redundancy(system, system.tree.q0),
        random=tuple(jacobian_rank(system, q) for q in clear),
        nearly_singular=len(closed) - len(clear),
        tried=poses,
    )


def residual(system: System, q: Array) -> float:
    """Return the largest entry of |phi(q)|."""
    return float(np.max(np.abs(_column(system.constraint(q))), initial=0.0))


def close_configuration(system: System, q: Array) -> Array:
    """Return `q ⊕ Σ dv` with `A dv = -phi`, in the least-squares sense at each step.

    A pose that cannot be closed is returned as it is after the last step.
    """
    for _ in range(NEWTON_STEPS if system.nc else 0):
        phi = _column(system.constraint(q))
        if np.max(np.abs(phi)) < 0.01 * CLOSED:
            break
        A = np.asarray(system.constraint_jacobian(q))
        dv = np.linalg.lstsq(A, -phi, rcond=RANK_TOL)[0]
        q = _column(system.integrate(q, dv / max(1.0, float(np.linalg.norm(dv)) / LONGEST_STEP)))
    return q


def jacobian_rank(system: System, q: Array) -> int:
    """Return the rank of A(q); rows are scaled to length 1 first, but vanishing rows."""
    return int(np.sum(_singular_values(system, q) > RANK_TOL))


def nearly_singular(system: System, q: Array) -> bool:
    """Return whether a singular value is neither clearly zero nor clearly not."""
    values = _singular_values(system, q)
    return bool(np.any((values > RANK_TOL**2) & (values < NEARLY_ZERO)))


def _singular_values(system: System, q: Array) -> Array:
    """Return the singular values of A(q), its rows scaled, as shares of `√nc`."""
    if system.nc == 0:
        return np.zeros(0)
    A = np.asarray(system.constraint_jacobian(q))
    length = np.linalg.norm(A, axis=1, keepdims=True)
    scaled = A / np.where(length > RANK_TOL, length, 1.0)
    return np.asarray(np.linalg.svd(scaled, compute_uv=False) / np.sqrt(system.nc))


def _column(value: ca.DM) -> Array:
    return np.asarray(value, dtype=float).ravel()
