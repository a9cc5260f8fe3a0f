"""The quantities of a `System`: MuJoCo's value of each, its unit and its natural size.

Divided by its size, entry by entry, a quantity has no unit and is of order one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mbcasadi.validation.agreement import mujoco_values as mj
from mbcasadi.validation.agreement.manifold import (
    Array,
    difference,
    equality_jacobian,
    equality_residual,
    inertia,
    integrate,
)
from mbcasadi.validation.agreement.mujoco_values import MujocoSample

Value = Callable[[MujocoSample], Array]

SHARE = 1e-3
"""Smallest value that an error is relative to, as a share of the natural size: intermediate results
have that size, and thirty bodies deep their rounding of 1e-13 of it is `EXACT` of this share."""

SHARE_BY_DIFFERENCE = 1e-1
"""The same for a difference quotient, whose rounding is that of values ten times the natural size
over its step: 1e-13, and more of it where many coordinates move."""

BY_DIFFERENCE = "reference by a seven-point difference of MuJoCo's"

FORCE, POSITION, ACCELERATION = "N, N m", "m, rad", "m/s², rad/s²"


class Evaluation(NamedTuple):
    """A quantity at a state, what it is divided by, and the least value of an error's base."""

    value: Array
    size: Array
    share: float


class Quantity(NamedTuple):
    """MuJoCo's value of one quantity, and its natural size, as functions of a sample.

    `axes` says what the axes run over: the coordinates q, v, u; others have another letter.
    """

    name: str
    unit: str
    value: Value
    size: Value
    note: str = ""
    share: float = SHARE
    axes: str = ""

    def at(self, s: MujocoSample) -> Evaluation:
        """Return MuJoCo's value at a sample."""
        return Evaluation(
            np.array(self.value(s), dtype=float), np.asarray(self.size(s)), self.share
        )


def quantities_of_members(nu: int, na: int, nc: int) -> list[Quantity]:
    """Return MuJoCo's side of the members of a system with these numbers of u, act and rows."""
    table: list[tuple[str, str, str, Value, Value]] = [
        ("mass_matrix", "vv", "kg, kg m, kg m²", lambda s: inertia(s.model, s.data),
         size_of_inertia),
        ("bias_force", "v", FORCE, lambda s: s.data.qfrc_bias, size_of_force),
        ("passive_force", "v", FORCE, lambda s: s.data.qfrc_passive, size_of_force),
        ("gravity_force", "v", FORCE, mj.gravity_force, size_of_force),
        ("kinetic_energy", "", "J", mj.kinetic_energy, size_of_energy),
        ("potential_energy", "", "J", mj.potential_energy, size_of_energy),
        ("velocity_map", "qv", "1", mj.velocity_map, lambda s: _per_step(s, s.sizes.configuration)),
        ("integrate", "q", POSITION, lambda s: integrate(s.model, s.q, s.dv),
         lambda s: s.sizes.configuration),
        ("difference", "v", POSITION, lambda s: difference(s.model, s.q0, s.q1),
         lambda s: s.sizes.coordinates),
        ("actuator_force", "v", FORCE, lambda s: s.data.qfrc_actuator, size_of_force),
        ("actuator_bias", "v", FORCE, mj.actuator_bias, size_of_force),
    ]  # fmt: skip
    if nu:
        table += [("actuation", "vu", f"{FORCE} per control", mj.actuation, size_of_actuation)]
    if na:
        table += [("act_dot", "a", "1/s", lambda s: s.data.act_dot,
                   lambda s: s.sizes.actuators.activation_rates)]  # fmt: skip
    if nc:
        table += [
            ("constraint", "c", POSITION, lambda s: equality_residual(s.model, s.data),
             lambda s: s.sizes.rows),
            ("constraint_jacobian", "cv", f"{POSITION} per {POSITION}",
             lambda s: equality_jacobian(s.model, s.data), lambda s: _per_step(s, s.sizes.rows)),
            ("constraint_bias", "c", ACCELERATION, mj.constraint_bias, size_of_constraint_bias),
        ]  # fmt: skip
    of = {"velocity_map": "mj_integratePos", "constraint_bias": "efc_J"}
    return [
        Quantity(name, unit, value, size, f"{BY_DIFFERENCE} {of[name]}", SHARE_BY_DIFFERENCE, axes)
        if name in of
        else Quantity(name, unit, value, size, axes=axes)
        for name, axes, unit, value, size in table
    ]


def quantities_of_frame(name: str, kind: str, i: int) -> dict[str, Quantity]:
    """Return MuJoCo's side of a frame's Functions, by their names.

    Args:
        name, kind: of the frame.
        i: its id in the model.
    """

    def at(value: Callable[[MujocoSample, str, int], Array]) -> Value:
        return lambda s: value(s, kind, i)

    def size_of_pose(s: MujocoSample) -> Array:
        """Return (3, 4): 1 for the rotation; the length, or the distance, for the origin.

        Far from the world's origin its rounding is that of the distance, and the rotation must not
        be hidden below it.
        """
        distance = float(np.linalg.norm(mj.frame_pose(s, kind, i)[:, 3]))
        return np.repeat([[1.0, 1.0, 1.0, max(s.sizes.length, distance)]], 3, axis=0)

    table: tuple[tuple[str, str, str, Value, Value], ...] = (
        ("pose", "", "m, 1", at(mj.frame_pose), size_of_pose),
        (
            "jacobian",
            "-v",
            "m, 1",
            at(mj.frame_jacobian),
            lambda s: _per_step(s, size_of_motion(s)),
        ),
        ("velocity", "", "m/s, rad/s", at(mj.frame_velocity), lambda s: size_of_motion(s, 1)),
        ("bias", "", ACCELERATION, at(mj.frame_bias), lambda s: size_of_motion(s, 2)),
    )  # fmt: skip
    return {
        what: Quantity(f"{kind} '{name}': {what}", unit, value, size, axes=axes)
        for what, axes, unit, value, size in table
    }


def size_of_inertia(s: MujocoSample) -> Array:
    """Return (nv, nv) `(M_ii M_jj)^½`."""
    root = s.sizes.roots(inertia(s.model, s.data))
    return np.outer(root, root)


def size_of_force(s: MujocoSample) -> Array:
    """Return (nv,) `M_ii^½ (vᵀ M v)^½ rate`, v of the mechanism's own size.

    An error below rounding of this size is below that of the forces that move the mechanism.
    """
    M = inertia(s.model, s.data)
    return s.sizes.roots(M) * float(np.sqrt(s.sizes.energy(M))) * s.sizes.rate


def size_of_energy(s: MujocoSample) -> Array:
    """Return (1,) the size of vᵀ M v."""
    return np.array([s.sizes.energy(inertia(s.model, s.data))])


def size_of_actuation(s: MujocoSample) -> Array:
    """Return (nv, nu) the force on each coordinate that a unit of each control can give."""
    return np.outer(1 / s.sizes.coordinates, s.sizes.actuators.torques)


def size_of_constraint_bias(s: MujocoSample) -> Array:
    """Return (nc,) sizes of the residuals times rate²."""
    return s.sizes.rows * s.sizes.rate**2


def size_of_motion(s: MujocoSample, order: int = 0) -> Array:
    """Return (6,): the length, and 1, times the rate to the power of the time derivatives."""
    return np.repeat([s.sizes.length, 1.0], 3) * s.sizes.rate**order


def _per_step(s: MujocoSample, size: Array) -> Array:
    """Return a size over those of the coordinates, (n, nv)."""
    return np.outer(size, 1 / s.sizes.coordinates)
