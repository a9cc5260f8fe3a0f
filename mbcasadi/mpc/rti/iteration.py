"""A real-time iteration as a controller: its reference, its state, its plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.control.law_interface.control_solution import ControlSolution, solve_by_name
from mbcasadi.control.tasks.reference import (
    Slices,
    by_full_name,
    fill_reference,
    hold_by_task,
    merged,
    slice_names,
)
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.solution import OcpSolution, violations_of
from mbcasadi.mpc.ocp.stage_tuning import TUNING
from mbcasadi.mpc.rti.memory import GuessMemory
from mbcasadi.shapes import (
    column,
    matrix,
    real_array,
)
from mbcasadi.short_text import summarised
from mbcasadi.system.coordinates import moving_size, start_pose


@final
@summarised
@dataclass(frozen=True)
class RealTimeIteration(ControlLaw):
    """(q, v, ref, [tuning], z) → (u, z_next, status, flags, residual); ref is p by samples.

    `tuning` is what the problem's `tunable` names, the same at all samples.

    Attributes:
        controller: for `export_c`.
        slots: the slices of p at the samples 0 … N: `setpoint.q0`, `setpoint.q1` and so on.
        ocp: the problem.
        memory: the layout of z.
    """

    ocp: OptimalControlProblem
    memory: GuessMemory

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.controller.name,
            "horizon": self.ocp.horizon,
            "period": self.period,
            "nx": self.ocp.nx,
            "nu": self.ocp.nu,
            "parameters": {slot.name: slot.size for slot in self.ocp.slots},
        }

    @property
    def nominal_reference(self) -> Array:
        """Reference (nref,) of the problem as it was made, its setpoint among it."""
        return self.reference()

    def example_inputs(self) -> dict[str, Array]:
        """Return a pose, where the problem is that of a mechanism, and the nominal parameters."""
        system, ref = self.ocp.system, {"ref": self.reference()}
        return ref if system is None else ref | {"q": start_pose(system)[: moving_size(system)]}

    @checked
    def reference(self, values: Slices | None = None, /, **slices: ArrayLike) -> Array:
        """Return the parameters of all samples with these slices, nominal elsewhere.

        Args:
            values: slices of `OptimalControlProblem.parameters`, by name: one for all samples, or
                a schedule (N + 1, n); or those of one sample, `setpoint.q0`.
            slices: the same as keywords, with `_` for dots: `setpoint_q=[0.1, 0.2]`.

        Raises:
            UnknownNameError, ProblemError, ShapeError: as in `OptimalControlProblem.parameters`.
        """
        given, of_samples = merged(values, slices), slice_names(self.reference_slices)
        single = {name: value for name, value in given.items() if name in of_samples}
        common = {name: value for name, value in given.items() if name not in of_samples}
        if TUNING in common:
            raise ProblemError("tuning is an input of its own; expected slices of the reference")
        p = self.ocp.parameters(common)[:, : self.ocp.n_ref]
        return fill_reference(self.slots, single, p.ravel())

    @checked
    def reference_at(self, q: ArrayLike, values: Slices | None = None) -> Array:
        """Return the parameters with which setpoint and tasks hold the pose q at all samples.

        The setpoint's control keeps its nominal value.

        Args:
            q: (nq,) pose.
            values: slices with another value, by name.

        Raises:
            ProblemError: neither setpoint nor tasks.
            UnknownNameError, ShapeError: as in `reference`.
        """
        system, names = self.ocp.system, [slot.name for slot in self.ocp.slots]
        if system is None or not ("setpoint.q" in names or self.ocp.tasks):
            raise ProblemError(
                f"'{self.controller.name}' has neither a setpoint nor tasks, and no reference that "
                "holds a pose; give the slices to reference()"
            )
        pose = column("q", q, system.nq)
        held: dict[str, ArrayLike] = {}
        if "setpoint.q" in names:
            held = {"setpoint.q": pose, "setpoint.v": np.zeros(system.nv)}
        for task in self.ocp.tasks:
            held |= hold_by_task(task, system)(pose)
        return self.reference({**held, **by_full_name(values or {}, names)})

    @checked
    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        *,
        z: ArrayLike | None = None,
        tuning: Mapping[str, float] | None = None,
    ) -> ControlSolution:
        """Return the output of one tick, with its plan.

        Args:
            q, v: (nq,), (nv,) state.
            ref: (nref,) parameters of all samples; nominal by default.
            z: (nz,) state; default: `z0`. Give the `z_next` of the tick before.
            tuning: entries of the input `tuning` by name; the others have their defaults.

        Raises:
            UnknownNameError: no such entry of `tuning`.
            ShapeError: a wrong shape. NaN and infinity do not raise: they give status 3.
        """
        parameters = self.reference() if ref is None else ref
        inputs = {"q": q, "v": v, "ref": parameters, "z": z}
        return solve_by_name(self.controller, inputs, tuning)

    @property
    def prepare(self) -> ca.Function:
        """(ref, [tuning], z) → (prepared, A_qp), the part of a tick before the measurement."""
        stages = self.controller.stages
        assert stages is not None
        assert stages.prepare is not None
        return stages.prepare

    @checked
    def z_from(self, guess: OcpSolution, pending: ArrayLike | None = None) -> Array:
        """Return the state that begins with this guess.

        Args:
            guess: of states and controls, from the moment at which the first control acts.
            pending: (d, nu) pending controls, newest last; by default those that hold the
                actuators at the first state of the guess that the law was made with.

        Raises:
            ShapeError: a guess of another problem, or NaN.
        """
        return first_memory(self.memory, guess, pending, is_plan=True)

    @checked
    def trajectory(self, z: Array) -> tuple[Array, Array]:
        """Return x (N + 1, nx) and u (N, nu) in z."""
        nx, nu, N = self.ocp.nx, self.ocp.nu, self.ocp.horizon
        flat, ends = column("z", z, self.controller.z0.size, finite=False), nx * (N + 1)
        return flat[:ends].reshape(N + 1, nx), flat[ends : ends + nu * N].reshape(N, nu)

    @checked
    def violations(self, z: Array, p: ArrayLike | None = None) -> tuple[str, ...]:
        """Return a sentence for each row of path and end that the plan in z violates.

        Args:
            z: of `z_next`; its sample 0 is that of the next tick where the guess is shifted.
            p: (N + 1, np) parameters; nominal by default.
        """
        x, u = self.trajectory(z)
        size = (self.ocp.horizon + 1, self.ocp.np_)
        parameters = self.ocp.parameters() if p is None else matrix("p", p, size)
        return violations_of(self.ocp, x, u, parameters)


def first_memory(
    memory: GuessMemory, guess: OcpSolution, pending: ArrayLike | None, *, is_plan: bool
) -> Array:
    """Return the state that begins with a guess.

    Args:
        memory: the layout of the state.
        guess, pending: as in `RealTimeIteration.z_from`.
        is_plan: whether the guess counts as a plan.

    Raises:
        ShapeError: a guess of another problem, or NaN.
    """
    require_guess(memory.ocp, guess)
    at_rest = np.tile(memory.hold.safe.constant, (memory.columns, 1))
    controls = at_rest if pending is None else real_array("pending", pending)
    if controls.shape != at_rest.shape or not np.all(np.isfinite(controls)):
        raise ShapeError(f"pending has shape {controls.shape}, expected {at_rest.shape}, finite")
    return memory.first(guess, controls, is_plan)


def require_guess(ocp: OptimalControlProblem, guess: OcpSolution) -> None:
    """Raise `ShapeError` where a guess is of another problem, or not finite."""
    sizes = ((ocp.horizon + 1, ocp.nx), (ocp.horizon, ocp.nu))
    shapes = (guess.x.shape, guess.u.shape)
    if shapes != sizes or not np.all(np.isfinite(np.append(guess.x, guess.u))):
        raise ShapeError(
            f"guess has x {shapes[0]} and u {shapes[1]}; expected {sizes[0]} and {sizes[1]}, finite"
        )
