"""Real-time iteration of an optimal control problem: one Gauss-Newton step at each tick.

    z = (x_0..x_N, u_0..u_{N-1}, active set)  →  linearise there, solve one QP from the measured
    state, add its step, give u_0, shift.

[M. Diehl et al., J. Process Control 12, 2002]. Repeated at one state without the shift, its fixed
point satisfies the first-order conditions of the whole problem.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.control.mpc.ocp import Array, OptimalControlProblem
from mbcasadi.control.mpc.ocp_solution import OcpSolution, rollout
from mbcasadi.control.mpc.rti_parts import Bounds, bounds_of, parts
from mbcasadi.control.mpc.rti_stages import RtiStages
from mbcasadi.control.mpc.stages import RESIDUALS
from mbcasadi.control.setup import require_positive
from mbcasadi.control.solver import controller_fun, require_solver
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.errors import ProblemError

STATUS_WORDS = (
    "0 step solved and verified; 1 feasible, not optimal; 2 infeasible; 3 bad input; 4 failed "
    "check; from 2 on, u is what was planned for this tick, cut to its limits"
)


@dataclass(frozen=True)
class RealTimeIteration:
    """The controller (q, v, ref, z) → (u, z_next, status, residual); ref is p, sample by sample.

    Attributes:
        controller: as `export_c` takes it.
        ocp: the problem.
        prepare: (X, U, P) → the part of a tick that can run before the state is measured.
    """

    controller: Controller
    ocp: OptimalControlProblem
    prepare: ca.Function

    @property
    def function(self) -> ca.Function:
        """The controller as one named Function."""
        return self.controller.function

    def z(self, guess: OcpSolution) -> Array:
        """Return the state that begins with this guess."""
        return _packed(guess, bounds_of(self.ocp))

    def trajectory(self, z: Array) -> tuple[Array, Array]:
        """Return x (N + 1, nx) and u (N, nu) in z."""
        nx, nu, N = self.ocp.nx, self.ocp.nu, self.ocp.horizon
        flat, ends = np.asarray(z, dtype=float).ravel(), nx * (N + 1)
        return flat[:ends].reshape(N + 1, nx), flat[ends : ends + nu * N].reshape(N, nu)


def real_time_iteration(
    ocp: OptimalControlProblem,
    guess: OcpSolution | None = None,
    *,
    shift: bool = True,
    tolerance: float = 1e-6,
    solver: str = "daqp",
    name: str = "real_time_iteration",
) -> RealTimeIteration:
    """Return the controller of a problem whose rows are bounds on controls and states.

    Args:
        ocp: the problem; the tick's period is that of its intervals.
        guess: the first guess, and that after a failure; rest at x = 0 without control by default.
        shift: whether the guess moves on by one interval each tick.
        tolerance: bound of each residual of the QP for its answer to count.
        solver: "daqp", or "qrqp", for the Function in Python; the C export uses DAQP.
        name: a C identifier.

    Raises:
        ProblemError: the problem has path or end rows, or a number makes no sense.
        SolverError: the solver is not available.
    """
    require_solver(solver)
    require_positive(tolerance=tolerance)
    rows = ocp.path_bounds.shape[0] + ocp.end_bounds.shape[0]
    if rows:
        raise ProblemError(
            f"'{ocp.name}' has {rows} path or end rows; a real-time iteration knows bounds of "
            "controls and states only. Give u_bounds, q_bounds, v_bounds, or a terminal cost"
        )
    if not name.isidentifier():
        raise ProblemError(f"name {name!r}; expected a C identifier")
    first = rollout(ocp, np.zeros(ocp.nx), ocp.parameters()) if guess is None else guess
    bounded = bounds_of(ocp)
    z0 = _packed(first, bounded)
    made = RtiStages(ocp, parts(ocp, bounded), bounded, z0, shift, tolerance)
    stages = made.stages()
    controller = _described(controller_fun(name, stages, solver), stages, made)
    return RealTimeIteration(controller, ocp, made.prepare())


def _packed(guess: OcpSolution, bounded: Bounds) -> Array:
    active = np.zeros(bounded.size * len(guess.u))
    return np.concatenate([guess.x.ravel(), guess.u.ravel(), active])


def _described(function: ca.Function, stages: LeastDistanceStages, made: RtiStages) -> Controller:
    ocp, N = made.ocp, made.ocp.horizon
    nq, nv = ocp.state.numel_in(0), ocp.state.numel_in(1)
    x, u = (tuple(f"{key}{i}" for i in range(size)) for key, size in (("x", ocp.nx), ("u", ocp.nu)))
    kinds = [*u, *(x[i] for i in made.bounded.states)]
    z = [f"{one}[{k}]" for k in range(N + 1) for one in x]
    z += [f"{one}[{k}]" for k in range(N) for one in u]
    z += [f"active.{one}[{k}]" for k in range(N) for one in kinds]
    names = [(f"{slot.name}.{c}", unit) for slot in ocp.slots
             for c, unit in zip(slot.components, slot.units, strict=True)]  # fmt: skip
    ref = tuple(f"{one}[{k}]" for k in range(N + 1) for one, _ in names)
    low, high = ocp.u_bounds.T
    return Controller(
        name=function.name(),
        function=function,
        inputs=(
            Signal("q", tuple(f"q{i}" for i in range(nq)), ("",) * nq),
            Signal("v", tuple(f"v{i}" for i in range(nv)), ("",) * nv),
            Signal("ref", ref, tuple(unit for _, unit in names) * (N + 1)),
            Signal("z", tuple(z), ("",) * len(z)),
        ),
        outputs=(
            Signal("u", u, ("",) * ocp.nu),
            Signal("z_next", tuple(z), ("",) * len(z)),
            Signal("status", ("status",), ("",)),
            Signal("residual", RESIDUALS, ("",) * len(RESIDUALS)),
        ),
        u_min=low,
        u_max=high,
        z0=made.z0,
        period=ocp.period,
        stages=stages,
        notes={
            "law": "real-time iteration: one Gauss-Newton step of an optimal control problem",
            "horizon": f"{N} intervals of {ocp.period:g} s",
            "unknowns, rows": f"{stages.n}, {stages.m}",
            "status": STATUS_WORDS,
        },
    )
