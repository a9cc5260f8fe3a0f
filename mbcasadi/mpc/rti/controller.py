"""Real-time iteration of an optimal control problem: one Gauss-Newton step at each tick.

    z = (x_0..x_N, u_0..u_{N-1}, pending, unsolved, active set)
      →  linearise there, solve one QP from the measured state, add its step, give u_0, shift.

[M. Diehl et al., J. Process Control 12, 2002]. Repeated at one state without the shift, its fixed
point satisfies the first-order conditions of the whole problem.
"""

from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.control.law_interface.control_solution import ControlSolution, solve_by_name
from mbcasadi.control.safe_output.mechanism_hold import (
    Hold,
    hold_of_controls,
    hold_of_mechanism,
)
from mbcasadi.control.tasks.reference import (
    Slices,
    by_full_name,
    fill_reference,
    hold_by_task,
    merged,
    slice_names,
)
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import LeastDistanceStages
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.solution import OcpSolution, rollout, violations_of
from mbcasadi.mpc.rti.condensing import interval_functions
from mbcasadi.mpc.rti.constraints import rows_of
from mbcasadi.mpc.rti.description import controller_data
from mbcasadi.mpc.rti.memory import Memory, memory_of
from mbcasadi.mpc.rti.stages import RtiStages
from mbcasadi.qp.solver import controller_fun, require_solver
from mbcasadi.shapes import (
    column,
    matrix,
    real_array,
    require_identifier,
    require_positive,
    require_whole,
)
from mbcasadi.short_text import summarised

EXPLODES = 1e3
"""Growth of a deviation in one interval that shows an unstable integrator, not a mechanism."""


@final
@summarised
@dataclass(frozen=True)
class RealTimeIteration(ControlLaw):
    """(q, v, ref, z) → (u, z_next, status, flags, residual); ref is p, sample by sample.

    Attributes:
        controller: for `export_c`.
        slots: the slices of p at the samples 0 … N: `setpoint.q0`, `setpoint.q1` and so on.
        ocp: the problem.
        memory: the layout of z.
    """

    ocp: OptimalControlProblem
    memory: Memory

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
        return fill_reference(self.slots, single, self.ocp.parameters(common).ravel())

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
    ) -> ControlSolution:
        """Return the output of one tick, with its plan.

        Args:
            q, v: (nq,), (nv,) state.
            ref: (nref,) parameters of all samples; nominal by default.
            z: (nz,) state; default: `z0`. Give the `z_next` of the tick before.

        Raises:
            ShapeError: a wrong shape. NaN and infinity do not raise: they give status 3.
        """
        parameters = self.reference() if ref is None else ref
        return solve_by_name(self.controller, {"q": q, "v": v, "ref": parameters, "z": z})

    @property
    def prepare(self) -> ca.Function:
        """(ref, z) → (prepared, A_qp), the part of a tick before the state is measured."""
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
        return _first_memory(self.memory, guess, pending, is_plan=True)

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


@checked
def real_time_iteration(
    ocp: OptimalControlProblem,
    guess: OcpSolution | None = None,
    *,
    delay: int = 0,
    pending: ArrayLike | None = None,
    shift: bool = True,
    tolerance: float = 1e-6,
    solver: str = "daqp",
    name: str = "real_time_iteration",
) -> RealTimeIteration:
    """Return the controller of a problem, with all its rows.

    Rows of path and end are linearised about the guess. Where hard ones are infeasible, the status
    is 2 and u is the planned control; soft ones are violated with slack, see `violations`. The
    first state is given, so rows without a control hold from the second sample on.

    Args:
        ocp: the problem; the tick's period is that of its intervals.
        guess: the first guess; by default the motion from rest in the initial pose, without
            control. After a failure it is used again near its first state; elsewhere the measured
            state is held. Only a guess that is given here counts as a plan: without a solution its
            controls are put out.
        delay: d, ticks from a measurement to the moment at which its control acts. The state is
            predicted over them with the pending controls; the guess, and p in `ref`,
            begin at that moment.
        pending: (d, nu) initial pending controls, newest last; at least one with S or du_bounds,
            whose changes start from it. By default the safe output at the first state of the guess,
            which holds the actuators there.
        shift: whether the guess is shifted by one interval each tick.
        tolerance: bound of each residual of the QP for its solution to be accepted.
        solver: "daqp", or "qrqp", for the Function in Python; the C has its own.
        name: a C identifier.

    Raises:
        ProblemError: an invalid number, or a control without cost.
        ShapeError: a guess of another problem, or a wrong number of pending controls.
        SolverError: the solver is not available.
    """
    require_solver(solver)
    require_positive(tolerance=tolerance)
    require_whole(0, delay=delay)
    require_identifier("name", name)
    rest = np.zeros(ocp.nx) if ocp.rest is None else ocp.rest
    first = rollout(ocp, rest, ocp.parameters()) if guess is None else guess
    rows = rows_of(ocp)
    memory = memory_of(ocp, rows.resting, int(delay), _hold_of(ocp, first))
    z0 = _first_memory(memory, first, pending, is_plan=guess is not None)
    problem = RtiStages(ocp, interval_functions(ocp, rows), rows, memory, z0, shift, tolerance)
    stages = problem.stages()
    _require_determined(problem, stages)
    controller = controller_data(controller_fun(name, stages, solver), stages, problem)
    return RealTimeIteration(controller, _slots_of_samples(ocp), ocp, memory)


def _slots_of_samples(ocp: OptimalControlProblem) -> tuple[Slot, ...]:
    """Return the slices of p of each sample, one sample after the other."""
    samples = range(ocp.horizon + 1)
    return tuple(replace(slot, name=f"{slot.name}{k}") for k in samples for slot in ocp.slots)


def _require_determined(problem: RtiStages, stages: LeastDistanceStages) -> None:
    """Raise unless the step is stable, and the cost determines every control at the guess."""
    growth = _growth(problem.ocp, problem.z0)
    if growth > EXPLODES:
        raise ProblemError(
            f"'{problem.ocp.name}': a deviation from the guess grows {growth:.3g}-fold in one "
            f"interval of {problem.ocp.period:g} s: the step is too long for what moves fastest, "
            "often a stiff servo on a light link; expected a shorter period, more substeps, "
            "armature on the joint, or a motor in place of the servo"
        )
    assert stages.prepare is not None
    prepared = stages.prepare(problem.ocp.parameters().ravel(), problem.z0)[0]
    if not np.all(np.isfinite(prepared.full())):
        raise ProblemError(
            f"'{problem.ocp.name}' leaves some control without cost, or its dynamics are not "
            "finite at the guess; expected R, S or another cost of every control, and a guess of "
            "numbers"
        )


def _hold_of(ocp: OptimalControlProblem, guess: OcpSolution) -> Hold:
    """Return the safe output; without a mechanism its command is the last one of the guess."""
    system = ocp.system
    if system is None:
        return hold_of_controls(ocp.u_bounds, ocp.period, np.array(guess.u[-1]))
    q_0 = guess.x[0, : system.nq]
    return hold_of_mechanism(system, ocp.u_bounds, ocp.period, np.zeros(ocp.nu), q_0)


def _growth(ocp: OptimalControlProblem, z: Array) -> float:
    """Return the spectral radius of the first interval at the guess; 0 where it is not finite."""
    x, u, p = z[: ocp.nx], z[ocp.nx * (ocp.horizon + 1) :][: ocp.nu], ocp.parameters()[0]
    x_next = ocp.dynamics(x, u, p).full()
    if not np.all(np.isfinite(x_next)):
        return 0.0
    A = ocp.dynamics.jacobian()(x, u, p, x_next)[0].full()
    return float(np.abs(np.linalg.eigvals(A)).max()) if np.all(np.isfinite(A)) else np.inf


def _first_memory(
    memory: Memory, guess: OcpSolution, pending: ArrayLike | None, *, is_plan: bool
) -> Array:
    ocp = memory.ocp
    sizes = ((ocp.horizon + 1, ocp.nx), (ocp.horizon, ocp.nu))
    shapes = (guess.x.shape, guess.u.shape)
    if shapes != sizes or not np.all(np.isfinite(np.append(guess.x, guess.u))):
        raise ShapeError(
            f"guess has x {shapes[0]} and u {shapes[1]}; expected {sizes[0]} and {sizes[1]}, finite"
        )
    at_rest = np.tile(memory.hold.safe.constant, (memory.columns, 1))
    controls = at_rest if pending is None else real_array("pending", pending)
    if controls.shape != at_rest.shape or not np.all(np.isfinite(controls)):
        raise ShapeError(f"pending has shape {controls.shape}, expected {at_rest.shape}, finite")
    return memory.first(guess, controls, is_plan)
