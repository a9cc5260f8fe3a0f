"""A model in numbers: sizes, coverage, limits, frames, feet, ranks, operation counts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mbcasadi.cli.ranks import Ranks, ranks_of
from mbcasadi.codegen.count import operations
from mbcasadi.system import System
from mbcasadi.system.actuator_kinds import actuator_kinds
from mbcasadi.system.possible_feet import possible_feet

COUNTED = (
    ("M", "mass_matrix"),
    ("h", "bias_force"),
    ("phi", "constraint"),
    ("A", "constraint_jacobian"),
    ("c", "constraint_bias"),
)


@dataclass(frozen=True)
class Inspection:
    """The output of `mbcasadi inspect`.

    Attributes:
        name: of the model.
        sizes: nq, nv, nu, na, nc.
        coverage: (treatment, feature, advice) of each feature.
        warnings: of MuJoCo's compiler.
        controls: (name, lowest u, highest u, lowest force, highest force) of each actuator.
        joints: (name, lowest, highest) of each slide and hinge joint.
        actuators: names by kind: motor, position, velocity, intvelocity, damper, muscle, general.
        frames: (kind, name, body) of the sites and bodies that tasks and contacts can name.
        feet: (geom, shape, body, lowest point in m, friction) of the geoms that could be feet.
        keyframes: names of the key frames.
        rows: names of the constraints, one for each row.
        ranks: of the constraint Jacobian, None where the model's constraints are refused.
        operations: of M, h, phi, A, c; None for a member that is refused.
    """

    name: str
    sizes: dict[str, int]
    coverage: list[tuple[str, str, str]]
    warnings: list[str]
    controls: list[tuple[str, float, float, float, float]]
    joints: list[tuple[str, float, float]]
    actuators: dict[str, list[str]]
    frames: list[tuple[str, str, str]]
    feet: list[tuple[str, str, str, float, float]]
    keyframes: list[str]
    rows: list[str]
    ranks: Ranks | None
    operations: dict[str, int | None]

    def to_dict(self) -> dict[str, object]:
        """Return all fields as plain data, table rows by column name."""
        ranks = None if self.ranks is None else self.ranks.text
        tables: dict[str, tuple[tuple[str, ...], Sequence[tuple[object, ...]]]] = {
            "coverage": (("treatment", "feature", "advice"), self.coverage),
            "controls": (("name", "u_min", "u_max", "force_min", "force_max"), self.controls),
            "joints": (("name", "min", "max"), self.joints),
            "frames": (("kind", "name", "body"), self.frames),
            "feet": (("geom", "shape", "body", "lowest", "friction"), self.feet),
        }
        named = {
            key: [dict(zip(columns, row, strict=True)) for row in rows]
            for key, (columns, rows) in tables.items()
        }
        return asdict(self) | named | {"rank_text": ranks}


def inspect_system(system: System) -> Inspection:
    """Return the numbers of a system that was read from a model."""
    limits = system.limits
    controls = zip(system.actuator_names, limits.ctrl, limits.force, strict=True)
    joints = zip(limits.joint_names, limits.joint, strict=True)
    has_ranks = _available(system, "constraint") and _available(system, "constraint_jacobian")
    return Inspection(
        name=system.name,
        sizes={key: getattr(system, key) for key in ("nq", "nv", "nu", "na", "nc")},
        coverage=[(i.treatment, i.feature, i.advice) for i in system.coverage.items],
        warnings=list(system.coverage.warnings),
        controls=[(n, float(u[0]), float(u[1]), float(f[0]), float(f[1])) for n, u, f in controls],
        joints=[(name, float(ends[0]), float(ends[1])) for name, ends in joints],
        actuators={kind: list(names) for kind, names in actuator_kinds(system).items()},
        frames=_frames(system),
        feet=[
            (foot.geom, foot.kind, foot.body, foot.lowest, foot.friction)
            for foot in (() if system.tree is None else possible_feet(system.tree))
        ],
        keyframes=[] if system.tree is None else list(system.tree.keyframes),
        rows=list(system.constraint_names),
        ranks=ranks_of(system) if has_ranks else None,
        operations={
            letter: operations(system.member(name)) if _available(system, name) else None
            for letter, name in COUNTED
        },
    )


def _frames(system: System) -> list[tuple[str, str, str]]:
    """Return kind, name and body of each site and body, sites first."""
    if system.tree is None:
        return []
    bodies = system.tree.bodies
    return [
        (frame.kind, frame.name, bodies[frame.body].name)
        for kind in ("site", "body")
        for frame in system.tree.frames
        if frame.kind == kind
    ]


def _available(system: System, member: str) -> bool:
    return system.coverage.refusal(member) is None
