"""A path of closed poses through desired places: a first guess for trajectory optimisation.

    q_k nearest to q_{k-1}  with  phi(q) = 0  and  value(q) = target_k,
    v_k = P (q_{k+1} ⊖ q_{k-1}) / (t_{k+1} - t_{k-1}),    u_k by inverse dynamics.

Poses come from `assemble`, of the mechanism with `value = target` as further rows. For a place out
of reach the error message gives the distance.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.laws.poses import POSE_RANK_TOL
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.dynamics.inverse import constrained_inverse_dynamics
from mbcasadi.errors import AssemblyError, ProblemError, ShapeError
from mbcasadi.mpc.ocp.solution import OcpSolution
from mbcasadi.mpc.trajectory.optimisation import trajectory_guess
from mbcasadi.mpc.trajectory.problem import TrajectoryProblem
from mbcasadi.shapes import column, real_array
from mbcasadi.short_text import summarised
from mbcasadi.simulation import assemble
from mbcasadi.simulation.recorder import map_samples
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import authored_pose
from mbcasadi.system.parametric import at_model_values


@summarised
@dataclass(frozen=True)
class PosePath:
    """Samples of a motion on the manifold.

    Attributes:
        t: (n,) s.
        q, v, a: (n, nq), (n, nv), (n, nv), closed; v and a by differences.
        u: (n, nu) of least norm, by inverse dynamics; ranges are ignored.
        missing: (n,) largest force that neither actuators nor constraints can give.
    """

    t: Array
    q: Array
    v: Array
    a: Array
    u: Array
    missing: Array

    @checked
    def guess(self, problem: TrajectoryProblem) -> OcpSolution:
        """Return a guess for a problem with the same number and length of intervals.

        Raises:
            ProblemError: another number of samples.
        """
        N = problem.ocp.horizon
        if len(self.t) != N + 1:
            raise ProblemError(
                f"the path has {len(self.t)} samples; expected {N + 1} for a horizon of {N} "
                "intervals"
            )
        ends = self.t[np.cumsum([0, *problem.options.counts])] - self.t[0]
        mean = (self.u[1:] + self.u[:-1]) / 2
        return trajectory_guess(problem, self.q, self.v, mean, durations=np.diff(ends))


@checked
@at_model_values
def pose_path(
    system: System,
    q: ca.SX,
    value: ca.SX,
    times: ArrayLike,
    targets: ArrayLike,
    *,
    q0: ArrayLike | None = None,
) -> PosePath:
    """Return poses with `value(q) = target`, one for each time, each nearest to the one before.

    Args:
        system: the mechanism, its constraints without time.
        q: (nq, 1) symbols of `value`.
        value: (k, 1) prescribed quantity: a frame's position, the angle of a crank.
        times: (n,) s, growing, n >= 2.
        targets: (n, k) its desired values.
        q0: (nq,) pose near the first; the authored one by default. It determines the branch.

    Raises:
        AssemblyError: a place out of reach; the message gives the time and the distance.
        ProblemError: times that do not grow, or constraints that move.
        ShapeError: a wrong shape, NaN, or an expression of other symbols.
    """
    t, rows = _check_targets(system, value, times, targets)
    pose = authored_pose(system) if q0 is None else column("q0", q0, system.nq)
    clock = ca.SX.sym("t")
    v = ca.SX.sym("v", system.nv)
    path = ca.vertcat(*(_interpolate(clock, rows[:, i]) for i in range(rows.shape[1])))
    prescribed = system.with_rows(q, v, phi=ca.vec(value) - path, t=clock)
    poses = np.empty((len(t), system.nq))
    for k in range(len(t)):
        try:
            pose = poses[k] = assemble(prescribed, pose, t=float(k))
        except AssemblyError as error:
            raise AssemblyError(
                f"pose {k}, at {t[k]:g} s, is out of reach: target {rows[k]}. {error}"
            ) from error
    return _path_through(system, t, poses)


def _interpolate(clock: ca.SX, values: Array) -> ca.SX:
    """Return the value at sample number `clock`, linear between samples."""
    return ca.SX(ca.pw_lin(clock, ca.DM(np.arange(len(values))), ca.DM(values)))


def _path_through(system: System, t: Array, q: Array) -> PosePath:
    """Return the path with its velocities, accelerations and controls."""
    n, nv = len(t), system.nv
    apart = system.difference.map(n - 1)(q[:-1].T, q[1:].T).full().T
    still = np.zeros((n, nv))
    bias = map_samples(system.loop_bias, q, still)[0] if system.nc else None
    v = _along(system, q, _slopes(t, apart), 0 * bias if bias is not None else None)
    bias = map_samples(system.loop_bias, q, v)[0] if system.nc else None
    a = _along(system, q, _slopes(t, np.diff(v, axis=0)), bias)
    inverse = constrained_inverse_dynamics(system)
    u, _, _, residual = map_samples(inverse, q, v, a)
    return PosePath(t, q, v, a, u, np.abs(residual).max(axis=1, initial=0.0))


def _slopes(t: Array, apart: Array) -> Array:
    """Return rates at samples: of both intervals beside them, of one at the ends."""
    h = np.diff(t)[:, None]
    inner = (apart[1:] + apart[:-1]) / (h[1:] + h[:-1])
    return np.vstack([apart[:1] / h[:1], inner, apart[-1:] / h[-1:]])


def _along(system: System, q: Array, x: Array, bias: Array | None) -> Array:
    """Return `x - A⁺ (A x + bias)`, the nearest that the rows allow."""
    if bias is None:
        return x
    flat = map_samples(_jacobian(system), q)[0]
    A = flat.reshape(len(q), system.nv, system.nc).transpose(0, 2, 1)
    gap = np.einsum("kij,kj->ki", A, x) + bias
    back = np.linalg.pinv(A, rcond=POSE_RANK_TOL)
    return np.asarray(x - np.einsum("kij,kj->ki", back, gap))


def _jacobian(system: System) -> ca.Function:
    """Return (q) → (A), column by column."""
    q = ca.SX.sym("q", system.nq)
    A = evaluate(system.loop_jacobian, {"q": q, "v": ca.DM.zeros(system.nv)})
    return ca.Function("jacobian", [q], [ca.vec(ca.densify(A))])


def _check_targets(
    system: System, value: ca.SX, times: ArrayLike, targets: ArrayLike
) -> tuple[Array, Array]:
    if system.timed or system.mask is not None or system.na:
        raise ProblemError(
            f"'{system.name}' has constraints that move or switch, or activations; expected a "
            "mechanism without them"
        )
    t, rows = real_array("times", times), real_array("targets", targets)
    if t.ndim != 1 or len(t) < 2 or not np.all(np.diff(t) > 0) or not np.all(np.isfinite(t)):
        raise ProblemError(f"times {t}; expected at least two, each later than the one before, s")
    size = ca.SX(value).numel()
    if rows.shape != (len(t), size) or not np.all(np.isfinite(rows)):
        raise ShapeError(
            f"targets has shape {rows.shape}, expected {(len(t), size)}, a row for each time, all "
            "finite"
        )
    return t, rows
