"""The force that a model lacks, learned by a real-time iteration from its own prediction.

    v̂_{k+1} = v after one step from the measured state, under the control that acts and d_k
    d_{k+1} = d_k + γ M_h P (v_{k+1} - v̂_{k+1}) / h,        γ = 1 - exp(-bandwidth h)

with the inertia `M_h` of a step at the measured pose, which holds what springs and servos add, and
the projector P on what the rows leave free: a force that a constraint takes up moves nothing and is
not seen, and gaps of soft constraints teach nothing. `P v` is the difference of two predictions,
one with the force `M_h v / h`. The prediction is that of the control which acts, so that a delay
makes the estimate no slower. d and its changes are at most what actuators and gravity can give, in
the metric of the inertia: an impact does not drive them away.
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.parts.observer import limited
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.stage import DISTURBANCE
from mbcasadi.system import System
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.coordinates import rates
from mbcasadi.system.ranges import Ranges


class Learned(NamedTuple):
    """What is remembered: d, the velocity that is expected at the next tick, whether it is."""

    d: ca.MX
    expected: ca.MX
    ready: ca.MX


@dataclass(frozen=True)
class LearnedForce:
    """How the force is learned; of size 0 without an observer.

    Attributes:
        nv: number of forces; 0 for none.
        gain: γ.
        inertia: (x, p) → (M_h) as a column.
        units: (nv,) square root of the inertia of each coordinate at rest.
        strength: largest `(dᵀ M⁻¹ d)^½`; infinite where an actuator has no limit.
        step: length of a tick, s.
        names: of the forces.
    """

    nv: int = 0
    gain: float = 0.0
    inertia: ca.Function | None = None
    units: Array | None = None
    strength: float = np.inf
    step: float = 1.0
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of entries that are remembered."""
        return 2 * self.nv + 1 if self.nv else 0

    @property
    def components(self) -> list[str]:
        """Names of the entries."""
        parts = [f"{part}.{name}" for part in ("disturbance", "expected") for name in self.names]
        return [*parts, "expects"] if self.nv else []

    def split(self, remembered: ca.MX) -> Learned:
        """Return the parts of what is remembered, d within its limit."""
        nv, d = self.nv, remembered[: self.nv, 0]
        size: ca.MX = ca.norm_2(d / ca.DM(np.asarray(self.units)))
        return Learned(
            limited(d, size, self.strength),
            remembered[nv : 2 * nv, 0],
            remembered[2 * nv, 0] > 0,
        )

    def missed(self, before: Learned, x: ca.MX, v: ca.MX, p: ca.MX) -> ca.MX:
        """Return `M_h (v - v̂) / h`, limited.

        Args:
            before: what the tick before remembers.
            x, v: (nx,), (nv,) measured state, and its velocity.
            p: (np,) parameters of the first sample.
        """
        rate = (v - before.expected) / self.step
        force = self._inertia(x, p) @ rate
        return limited(force, ca.sqrt(ca.fmax(ca.dot(rate, force), 0)), self.strength)

    def next(
        self,
        before: Learned,
        at: tuple[ca.MX, ca.MX],
        velocities: tuple[ca.MX, ca.MX],
        valid: ca.MX,
    ) -> ca.MX:
        """Return what the next tick remembers.

        Args:
            before: what the tick before remembers.
            at: state and parameters of this tick.
            velocities: (nv,) expected at the next tick, without and with the force that is missed.
                They are affine in it; their difference is what constraints leave of it.
            valid: whether the inputs are good.
        """
        plain, moved = velocities
        share = self.gain * ca.logic_and(valid, before.ready)
        change = self._inertia(*at) @ (moved - plain) / self.step
        d = before.d + ca.if_else(share > 0, share * change, 0)
        expected = plain + ca.if_else(share > 0, share * (moved - plain), 0)
        return ca.vertcat(d, ca.if_else(valid, expected, 0), valid)

    def _inertia(self, x: ca.MX, p: ca.MX) -> ca.MX:
        assert self.inertia is not None
        M: ca.MX = ca.reshape(self.inertia(x, p), self.nv, self.nv)
        return M


def learned_force(ocp: OptimalControlProblem, bandwidth: float, tick: float) -> LearnedForce:
    """Return how the disturbance of a problem is learned.

    Args:
        ocp: with the part `Disturbance`.
        bandwidth: 1/s.
        tick: time between two ticks, s.

    Raises:
        ProblemError: a problem without a disturbance.
    """
    system = ocp.system
    if system is None or ocp.motion is None or DISTURBANCE not in [s.name for s in ocp.slots]:
        raise ProblemError(
            f"'{ocp.name}' has no disturbance that an observer can learn; expected Disturbance() "
            "among its parts, and step=SemiImplicitStep()"
        )
    assert ocp.rest is not None
    nv = system.nv
    M = ocp.motion.inertia(ocp.rest, ocp.parameters()[0]).full().reshape(nv, nv)
    return LearnedForce(
        nv=nv,
        gain=float(-np.expm1(-bandwidth * tick)),
        inertia=ocp.motion.inertia,
        units=np.sqrt(np.diag(M)),
        strength=_strength(system, ocp.rest[: system.nq], M),
        step=tick,
        names=rates(system).components,
    )


def _strength(system: System, pose: Array, M: Array) -> float:
    """Return the largest `(fᵀ M⁻¹ f)^½` of actuators and gravity; infinite without limits.

    No fall, free or constrained, has a larger one than `m^½ g`.
    """
    if system.tree is None:
        return float("inf")
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    ranges = Ranges(system.limits.ctrl, system.limits.force)
    model = actuator_model(system, ranges, 1.0, q, v, None)
    if not all(model.bounded):
        return float("inf")
    outputs = [ca.densify(model.moment), ca.fmax(ca.fabs(model.lower), ca.fabs(model.upper))]
    at = ca.Function("actuators", [q, v], outputs)
    B, most = (part.full() for part in at(pose, np.zeros(system.nv)))
    sizes = np.sqrt(np.einsum("ij,ij->j", B, np.linalg.solve(M, B)))
    mass = sum(body.mass for body in system.tree.bodies)
    fall = np.sqrt(mass) * np.linalg.norm(system.tree.gravity)
    return float(sizes @ most.ravel() + fall)
