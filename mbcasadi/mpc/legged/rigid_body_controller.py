"""MPC of a rigid body as a controller: its reference, its output, its plan."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.control.law_interface.control_solution import solve_by_name
from mbcasadi.control.tasks.reference import Slices, fill_reference, merged
from mbcasadi.description.status import QP_STATUS, Status
from mbcasadi.errors import ShapeError
from mbcasadi.mpc.legged.rigid_body import NX, Array, SingleRigidBody
from mbcasadi.shapes import (
    column,
    real_array,
    require_shape,
)
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class RigidBodyPlan:
    """The controller's output, with its plan.

    Attributes:
        u: (3 feet,) forces of the ground on the feet now, N, world axes; from status 2 on the safe
            output.
        z_next: state of the next tick.
        status, status_text: of the controller, as number and as text.
        residual: (3,) see `residual` of the controller.
        states: (N + 1, 12), from the measured one on.
        planned_forces: (N, feet, 3) forces, N.
    """

    u: Array
    z_next: Array
    status: int
    status_text: str
    residual: Array
    states: Array
    planned_forces: Array

    def _summary(self) -> dict[str, object]:
        return {"status": self.status_text, "u": self.u, "residual": self.residual}

    @property
    def forces(self) -> Array:
        """(feet, 3) u, foot by foot."""
        return self.u.reshape(-1, 3)

    @property
    def solved(self) -> bool:
        """Whether the status is 0."""
        return self.status == Status.SOLVED


EXAMPLE_STANCE = 0.25
"""Height of the body and distance of its feet, m, from which an example starts."""


@final
@summarised
@dataclass(frozen=True)
class SingleRigidBodyMPC(ControlLaw):
    """The controller (x0, feet, ref, mask, z) → (u, z_next, status, flags, residual).

    Attributes:
        controller: for `export_c`.
        slots: the slices of the reference, `x1` … `xN`, a state for each sample.
        body, horizon, Q, rho: the problem.
    """

    body: SingleRigidBody
    horizon: int
    Q: Array
    rho: float

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.controller.name,
            "feet": self.body.feet,
            "horizon": self.horizon,
            "period": self.period,
        }

    @property
    def nominal_reference(self) -> None:
        """None: the reference says where the body should be."""
        return None

    def example_inputs(self) -> dict[str, Array]:
        """Return a body above the middle of its feet, which stand on the corners of a square."""
        count = self.body.feet
        angles = 2 * np.pi * np.arange(count) / count
        feet = EXAMPLE_STANCE * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
        state = np.zeros(NX)
        state[5] = EXAMPLE_STANCE
        return {"x0": state, "feet": feet.ravel(), "ref": self.reference_at(state)}

    @checked
    def reference(self, values: Slices | None = None, /, **slices: ArrayLike) -> Array:
        """Return the reference of all samples: `reference(x=...)`, zero elsewhere.

        Args:
            values: by name, `{"x1": state}`; "x" has (N, 12) rows, or (12,) for all samples.
            slices: the same as keywords.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ShapeError: a slice of a wrong size.
        """
        given = dict(merged(values, slices))
        if "x" in given:
            rows = real_array("reference x", given.pop("x"))
            rows = np.tile(rows, (self.horizon, 1)) if rows.ndim < 2 else rows
            require_shape("reference x", rows, (self.horizon, NX), "a state for each sample")
            given = {f"x{k + 1}": row for k, row in enumerate(rows)} | given
        return fill_reference(self.slots, given)

    @checked
    def reference_at(self, q: ArrayLike, values: Slices | None = None) -> Array:
        """Return the reference that stays at the place and yaw of a state, level and at rest.

        Args:
            q: (12,) state (rpy, p, ω, v) of the body, which has no other pose; (6,) suffices.
            values: slices with another value, by name.

        Raises:
            UnknownNameError, ShapeError: as in `reference`.
        """
        pose = real_array("q", q).ravel()
        if pose.size not in {NX, NX // 2} or not np.all(np.isfinite(pose)):
            raise ShapeError(
                f"q has {pose.size} entries; expected the body's (roll, pitch, yaw, x, y, z), or "
                f"its state ({NX},), finite"
            )
        rest = np.zeros(NX)
        rest[2:6] = pose[2:6]
        return self.reference({"x": rest} | dict(values or {}))

    @checked
    def solve(
        self,
        x0: ArrayLike,
        feet: ArrayLike,
        ref: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        z: ArrayLike | None = None,
    ) -> RigidBodyPlan:
        """Return the controller's output, with its plan.

        Args:
            x0: (12,) state.
            feet: (feet, 3) their places in the world, m.
            ref: (N, 12), or (12 N,), a state for each sample 1..N; by default `reference_at(x0)`.
            mask: (N, feet), which foot is on the ground in which interval; all by default.
            z: state of the controller; nothing active by default.

        Raises:
            ShapeError: a wrong shape, such as a schedule longer than the horizon. NaN does not
                raise: it gives status 3.
        """
        N, nf = self.horizon, self.body.feet
        state = column("x0", x0, NX, finite=False)
        if ref is None:
            ref = self.reference_at(state) if np.all(np.isfinite(state)) else np.zeros((N, NX))
        rows = real_array("ref", ref)
        rows = rows.reshape(N, NX) if rows.shape == (N * NX,) else rows
        if mask is not None:
            mask = _table("mask", mask, (N, nf), "a row for each interval")
        output = solve_by_name(
            self.controller,
            {
                "x0": state,
                "feet": _table("feet", feet, (nf, 3), "a place for each foot"),
                "ref": _table("ref", rows, (N, NX), "a state for each sample"),
                "mask": mask,
                "z": z,
            },
        )
        assert output.planned_states is not None
        assert output.planned_controls is not None
        return RigidBodyPlan(
            u=output.u,
            z_next=output.z_next,
            status=output.status,
            status_text=QP_STATUS.words[output.status],
            residual=output.residual,
            states=output.planned_states,
            planned_forces=output.planned_controls.reshape(N, nf, 3),
        )


def _table(name: str, value: ArrayLike, shape: tuple[int, int], meaning: str) -> Array:
    array = real_array(name, value)
    require_shape(name, array, shape, meaning)
    return array.ravel()
