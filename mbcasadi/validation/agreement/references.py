"""MuJoCo's side of all quantities of a `System`: the value, its unit and its natural size."""

from collections.abc import Callable
from typing import NamedTuple

from mbcasadi.validation.agreement import constraint_values, frame_values, manifold, weights
from mbcasadi.validation.agreement import mujoco_values as mj
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.potential_energy import potential_energy
from mbcasadi.validation.agreement.samples import Sample

Value = Callable[[Sample], Array]

SHARE = 1e-3
"""Smallest value that an error is relative to, as a share of the natural size: intermediate results
have that size, and thirty bodies deep their rounding of 1e-13 of it is `EXACT` of this share."""

SHARE_BY_DIFFERENCE = 1e-1
"""The same for a difference quotient, whose rounding is that of values ten times the natural size
over its step: 1e-13, and more of it where many coordinates move."""

BY_DIFFERENCE = "reference by a seven-point difference of MuJoCo's"


class Reference(NamedTuple):
    """MuJoCo's value of one quantity, and its natural size, as functions of a sample."""

    quantity: str
    unit: str
    value: Value
    size: Value
    note: str = ""
    share: float = SHARE


def references_of_members(nu: int, na: int, nc: int) -> list[Reference]:
    """Return MuJoCo's side of the members of a system with these numbers of u, act and rows."""
    force, position = "N, N m", "m, rad"
    of_force, of_energy = weights.of_force, weights.of_energy
    references = [
        Reference(
            "mass_matrix",
            "kg, kg m, kg m²",
            lambda s: manifold.inertia(s.model, s.data),
            weights.of_inertia,
        ),
        Reference("bias_force", force, lambda s: s.data.qfrc_bias, of_force),
        Reference("passive_force", force, lambda s: s.data.qfrc_passive, of_force),
        Reference("gravity_force", force, mj.gravity_force, of_force),
        Reference("kinetic_energy", "J", mj.kinetic_energy, of_energy),
        Reference("potential_energy", "J", potential_energy, of_energy),
        by_difference(
            "velocity_map", "1", mj.velocity_map, weights.of_velocity_map, "mj_integratePos"
        ),
        Reference(
            "integrate",
            position,
            lambda s: manifold.integrate(s.model, s.q, s.dv),
            weights.of_configuration,
        ),
        Reference(
            "difference",
            position,
            lambda s: manifold.difference(s.model, s.q0, s.q1),
            weights.of_step,
        ),
        Reference("actuator_force", force, lambda s: s.data.qfrc_actuator, of_force),
        Reference("actuator_bias", force, mj.actuator_bias, of_force),
    ]
    if nu:
        per_control = f"{force} per control"
        references.append(Reference("actuation", per_control, mj.actuation, weights.of_actuation))
    if na:
        references.append(
            Reference("act_dot", "1/s", lambda s: s.data.act_dot, weights.of_activation)
        )
    return references + (_references_of_constraints(position) if nc else [])


def _references_of_constraints(position: str) -> list[Reference]:
    return [
        Reference("constraint", position, constraint_values.constraint, weights.of_residual),
        Reference(
            "constraint_jacobian",
            f"{position} per {position}",
            constraint_values.constraint_jacobian,
            weights.of_constraint_jacobian,
        ),
        by_difference(
            "constraint_bias",
            "m/s², rad/s²",
            constraint_values.constraint_bias,
            weights.of_constraint_bias,
            "efc_J",
        ),
    ]


def by_difference(quantity: str, unit: str, value: Value, size: Value, of: str) -> Reference:
    """Return a reference that is a difference quotient.

    Args:
        quantity, unit, value, size: as of `Reference`.
        of: what of MuJoCo's is differentiated.
    """
    return Reference(quantity, unit, value, size, f"{BY_DIFFERENCE} {of}", SHARE_BY_DIFFERENCE)


def references_of_frame(name: str, kind: str, i: int) -> dict[str, Reference]:
    """Return MuJoCo's side of a frame's Functions, by their names.

    Args:
        name, kind: of the frame.
        i: its id in the model.
    """

    def pose_size(s: Sample) -> Array:
        return weights.of_pose(s, frame_values.pose(s, kind, i)[:, 3])

    members = (
        ("pose", "m, 1", frame_values.pose, pose_size),
        ("jacobian", "m, 1", frame_values.jacobian, weights.of_frame_jacobian),
        ("velocity", "m/s, rad/s", frame_values.velocity, weights.of_frame_velocity),
        ("bias", "m/s², rad/s²", frame_values.bias, weights.of_frame_bias),
    )

    def at(value: Callable[[Sample, str, int], Array]) -> Value:
        return lambda s: value(s, kind, i)

    return {
        what: Reference(f"{kind} '{name}': {what}", unit, at(value), size)
        for what, unit, value, size in members
    }
