"""An optimal trajectory: its samples, its motion between them and beyond, and its residuals."""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.dynamics.formulations import DEFAULT
from mbcasadi.dynamics.inverse import constrained_inverse_dynamics
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.ocp.solution import OcpSolution
from mbcasadi.mpc.trajectory.problem import TrajectoryProblem
from mbcasadi.shapes import real_array, require_name
from mbcasadi.short_text import summarised
from mbcasadi.simulation import EquationOptions
from mbcasadi.simulation.functions import sample_fun, tangent_fun
from mbcasadi.simulation.recorder import map_samples
from mbcasadi.simulation.trajectory import Trajectory

BEYOND = ("hold", "repeat")


@summarised
@dataclass(frozen=True)
class TrajectorySolution:
    """The solution; `ocp_solution` holds its residuals and multipliers.

    Attributes:
        problem: that was solved.
        ocp_solution: states X, controls, status, residuals.
    """

    problem: TrajectoryProblem
    ocp_solution: OcpSolution

    def _summary(self) -> dict[str, object]:
        return {
            "solved": self.solved,
            "durations": self.durations,
            "cost": self.ocp_solution.cost,
            "largest residual": max(self.ocp_solution.gap, self.ocp_solution.violation),
        }

    @property
    def solved(self) -> bool:
        """Whether all residuals are within the tolerance."""
        return self.ocp_solution.solved

    @property
    def in_words(self) -> str:
        """One sentence: duration of the motion, status, residuals, the solver's own status."""
        return f"{self.t[-1]:.6g} s; {self.ocp_solution.in_words}"

    @property
    def cost(self) -> float:
        """Cost of the problem."""
        return self.ocp_solution.cost

    @property
    def durations(self) -> Array:
        """(phases,) s."""
        return np.array(self.ocp_solution.x[0, self.problem.layout.durations])

    @property
    def t(self) -> Array:
        """(N + 1,) s."""
        return np.concatenate([[0.0], np.cumsum(self.problem.lengths(self.durations))])

    @property
    def q(self) -> Array:
        """(N + 1, nq)."""
        return self.ocp_solution.x[:, : self.problem.system.nq]

    @property
    def v(self) -> Array:
        """(N + 1, nv)."""
        return self.ocp_solution.x[:, self.problem.system.nq : self.problem.layout.nx]

    @property
    def u(self) -> Array:
        """(N, nu), each held over its interval."""
        return self.ocp_solution.u[:, : self.problem.layout.nu]

    @cached_property
    def trajectory(self) -> Trajectory:
        """The samples with accelerations, forces, energy and drift; the last u is repeated."""
        system, equations, n = self.problem.system, EquationOptions(), len(self.t)
        u, zero = np.vstack([self.u, self.u[-1:]]), np.zeros((n, system.nv))
        mask, act = self._mask, np.zeros((n, system.na))
        a, lam, f_c, energy = map_samples(
            sample_fun(system, DEFAULT, equations), self.q, self.v, self.t, act, u, zero, mask
        )
        offset = np.zeros((n, system.nc))
        tangent = tangent_fun(system, equations)
        tangent_values = map_samples(tangent, self.q, self.v, self.t, mask, offset)
        gap, slip, _, rank = (column.ravel() for column in tangent_values[1:5])
        return Trajectory(
            t=self.t,
            q=self.q,
            v=self.v,
            a=a,
            lam=lam,
            f_c=f_c,
            u=u,
            act=act,
            mask=mask,
            energy=energy.ravel(),
            drift=gap,
            drift_velocity=slip,
            rank=rank.astype(np.int64),
        )

    @checked
    def at(self, times: ArrayLike, beyond: str = "hold") -> tuple[Array, Array, Array]:
        """Return q (n, nq), v (n, nv), u (n, nu) at any times, on the manifold.

        Between two samples they are a step from the one before, under its control.

        Args:
            times: (n,) s from the start, not negative.
            beyond: after the end, "hold" rests in the last pose, by the torques of least norm that
                hold it; "repeat" continues with the first sample of a periodic motion, shifted by
                the growth of a period.

        Raises:
            ProblemError: negative times, or a motion that is not periodic to be repeated.
            UnknownNameError: another value of `beyond`.
            ShapeError: a wrong shape, or NaN.
        """
        require_name("beyond", beyond, BEYOND)
        instants = real_array("times", times)
        if instants.ndim != 1 or not instants.size or not np.all(np.isfinite(instants)):
            raise ShapeError(
                f"times have shape {instants.shape}, expected (n,), one at least, all finite"
            )
        if instants.min() < 0:
            raise ProblemError(
                f"time {instants.min()} s is before the start of the trajectory, 0 s"
            )
        if beyond == "repeat" and not self.problem.layout.periodic:
            raise ProblemError("the trajectory is not periodic; expected beyond='hold'")
        end = self.t[-1]
        turns = np.floor(instants / end) if beyond == "repeat" else np.zeros_like(instants)
        within = np.minimum(instants - turns * end, end)
        k = np.clip(np.searchsorted(self.t, within, side="right") - 1, 0, len(self.u) - 1)
        inputs = [self.q[k].T, self.v[k].T, self.u[k].T]
        inputs += [self._mask[k].T] if self.problem.system.mask is not None else []
        step = self._steps(len(instants))
        q, v = (out.full().T for out in step(*inputs, (within - self.t[k])[None]))
        u = np.clip(self.u[k], *self.problem.limits.T)
        if beyond == "hold" and np.any(instants > end):
            q, v, u = self._rest_after(instants > end, q, v, u)
        return q + turns[:, None] * (self.q[-1] - self.q[0]), v, u

    def _rest_after(self, past: Array, q: Array, v: Array, u: Array) -> tuple[Array, Array, Array]:
        is_past = past[:, None].astype(bool)
        rest = np.zeros(self.problem.system.nv)
        controls = np.where(is_past, self.rest_control, u)
        return np.where(is_past, self.q[-1], q), np.where(is_past, rest, v), controls

    @cached_property
    def rest_control(self) -> Array:
        """(nu,) of least norm that holds the last pose, clipped to the bounds.

        Raises:
            ProblemError: rows are off at the end, whose forces inverse dynamics would use.
        """
        system, rest = self.problem.system, np.zeros(self.problem.system.nv)
        if not np.all(self._mask[-1]):
            raise ProblemError(
                f"rows of '{system.name}' are off at the end of the trajectory, so its torques at "
                "rest are not known; expected times within it, or beyond='repeat'"
            )
        inverse = constrained_inverse_dynamics(system)
        u = np.array(inverse(q=self.q[-1], v=rest, a=rest)["u"]).ravel()
        return np.asarray(np.clip(u, *self.problem.limits.T))

    @property
    def _mask(self) -> Array:
        """Return (N + 1, nc) rows that are on."""
        places, system = slot_slices(self.problem.ocp.slots), self.problem.system
        if "mask" in places:
            return np.array(self.ocp_solution.p[:, places["mask"]])
        return np.ones((len(self.t), system.nc))

    def _steps(self, count: int) -> ca.Function:
        return self.problem.step.map(count)
