"""A linear Kalman filter on the constraint manifold, and LQG: the regulator on its estimate.

    correct:  x ← x + L (y - y_0 - C x)        y = output(q, v), the measurement; unless rejected
    predict:  x ← A x + B (u - u_0)            exact hold, u as clipped to its limits

x are the free coordinates only, so the estimate never leaves the manifold (to first order), and a
loop's redundant joints follow from the measured ones. A measurement that the noise does not explain
is rejected; see `innovation_gate`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions, require_period
from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.regulators.controllability import require_detectable
from mbcasadi.control.regulators.discrete import discretize
from mbcasadi.control.regulators.feedback import (
    caused_acceleration,
    linear_action,
    require_continuous,
)
from mbcasadi.control.regulators.innovation_gate import (
    DEFAULT_GATE,
    Decision,
    Gate,
    InnovationGate,
    innovation_gate,
    require_rows,
    wrap_angles,
)
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.lqr import require_equilibrium
from mbcasadi.control.regulators.operating_point import Array, require_no_activations
from mbcasadi.control.regulators.riccati import Filter, sampled_noise, stationary_filter
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.symbols import named_function
from mbcasadi.shapes import require_positive, require_shape, weight
from mbcasadi.short_text import summarised
from mbcasadi.system import evaluate

MEASURED = 1e-9
"""Relative part of a coordinate that a measurement may miss by rounding."""


@summarised
class Corrected(NamedTuple):
    """An estimate after a measurement.

    Attributes:
        x: (nx,) corrected estimate.
        decision: of the gate.
    """

    x: ca.SX
    decision: Decision[ca.SX]


@summarised
@dataclass(frozen=True)
class KalmanFilter:
    """A stationary filter: its matrices, and one tick of it as a Function.

    Attributes:
        linear: the discrete system of the prediction.
        output: (q, [v]) → (y), the measurement.
        y_0: (ny,) its value at the operating point.
        C: (ny, nx) `δy = C x`.
        gains: L, covariances and poles.
        gate: of the innovation, or None.
        wrap: rows of y that are angles, equal to themselves plus 2 π.
    """

    linear: Linearization
    output: ca.Function
    y_0: Array
    C: Array
    gains: Filter
    gate: InnovationGate | None = None
    wrap: tuple[int, ...] = ()

    @property
    def function(self) -> ca.Function:
        """(x, y, u, [gate]) → (x_next, q, v, [gate_next, flags, failed]): correct, then predict.

        `x` is the prediction for this tick, `x_next` the one for the next; (q, v) the corrected
        estimate. With a gate, `gate` is its memory, `gate0` at first; `flags` has the bit GATED
        where y is rejected, and `failed` is one where it has been rejected for too long.
        """
        linear = self.linear
        x, y = ca.SX.sym("x", linear.nx), ca.SX.sym("y", self.y_0.size)
        u = ca.SX.sym("u", linear.nu)
        gate = ca.SX.sym("gate", self.gate0.size)
        estimate, decision = self.correct(x, y, gate)
        q = linear.system.integrate(linear.q, ca.DM(linear.to_dq) @ estimate)
        v = ca.DM(linear.v) + ca.DM(linear.to_dv) @ estimate
        inputs = {"x": x, "y": y, "u": u}
        outputs = {"x_next": self.predict(estimate, u), "q": q, "v": v}
        if self.gate is not None:
            inputs["gate"] = gate
            flags = Flag.GATED * ca.logic_not(decision.used)
            outputs |= {"gate_next": decision.memory, "flags": flags, "failed": decision.failed}
        return named_function("kalman", inputs, {k: ca.densify(e) for k, e in outputs.items()})

    @property
    def gate0(self) -> Array:
        """Memory of the gate at first; no entries without a gate."""
        return np.zeros(0) if self.gate is None else self.gate.start

    @checked
    def correct(self, x: ca.SX, y: ca.SX, memory: ca.SX) -> Corrected:
        """Return `x + L (y - y_0 - C x)`, or x where the gate rejects y.

        Args:
            x: (nx,) prediction for this tick.
            y: (ny,) measurement.
            memory: of the gate.
        """
        require_shape("x", x, (self.linear.nx, 1), "(nx, 1)")
        require_shape("y", y, (self.y_0.size, 1), "(ny, 1)")
        require_shape("memory", memory, (self.gate0.size, 1))
        e = wrap_angles(y - self.y_0 - ca.DM(self.C) @ x, self.wrap)
        if self.gate is None:
            off = ca.SX(0)
            return Corrected(x + ca.DM(self.gains.L) @ e, Decision(ca.SX(1), off, off, memory))
        decision = self.gate.decide(e, memory)
        return Corrected(x + ca.DM(self.gains.L) @ ca.if_else(decision.used, e, 0), decision)

    @checked
    def deviation(self, x: ca.SX, y: ca.SX, used: ca.SX) -> ca.SX:
        """Return `y - y_0` (ny,), angles next to the prediction; `C x` where y is rejected.

        Args:
            x: (nx,) prediction for this tick.
            y: (ny,) measurement.
            used: whether the gate accepts it.
        """
        require_shape("x", x, (self.linear.nx, 1), "(nx, 1)")
        require_shape("y", y, (self.y_0.size, 1), "(ny, 1)")
        expected = ca.DM(self.C) @ x
        e = wrap_angles(y - self.y_0 - expected, self.wrap)
        return expected + ca.if_else(used, e, 0)

    @checked
    def predict(self, x: ca.SX, u: ca.SX) -> ca.SX:
        """Return `A x + B (u - u_0)`."""
        require_shape("x", x, (self.linear.nx, 1), "(nx, 1)")
        require_shape("u", u, (self.linear.nu, 1), "(nu, 1)")
        return ca.DM(self.linear.dfdx) @ x + ca.DM(self.linear.dfdu) @ (u - self.linear.u)


@checked
def kalman(
    linear: Linearization,
    output: ca.Function,
    W: ArrayLike,
    V: ArrayLike,
    *,
    period: float = 1e-3,
    gate: Gate | None = DEFAULT_GATE,
    wrap: Sequence[int] = (),
) -> KalmanFilter:
    """Return the stationary Kalman filter of a mechanism near an equilibrium.

    Args:
        linear: from `linearize` at an equilibrium.
        output: (q, [v]) → (y), for example `encoders(system, joints)`.
        W: (2 nv, 2 nv) intensity of the white noise in the rates of (δq, δv), its square per
            second; (2 nv,) for a diagonal one. Disturbing forces are noise in the rate of δv.
        V: (ny, ny) covariance of the noise of one measurement, positive; (ny,) or a number for a
            diagonal one.
        period: s.
        gate: when a measurement is rejected, by the innovation's covariance; None for never.
        wrap: rows of y that are angles which the sensor knows up to 2 π.

    Raises:
        ShapeError: a wrong shape, or NaN.
        ProblemError: no equilibrium; a mode that grows or drifts and is unobservable in y (it is
            named); a mode on the border of stability without noise; no such row to wrap.
    """
    require_continuous(linear)
    require_equilibrium(linear)
    require_no_activations(linear.system, "a Kalman filter")
    require_positive(period=period)
    C = linear.output_matrix(output)
    noise = weight("V", V, C.shape[0], definite=True)
    disturbance = weight("W", W, 2 * linear.system.nv)
    require_detectable(linear, C)
    F = np.hstack([linear.from_dq, linear.from_dv])
    step = discretize(linear, period)
    added = sampled_noise(linear.dfdx, F @ disturbance @ F.T, period)
    y_0 = np.array(evaluate(output, {"q": ca.DM(linear.q), "v": ca.DM(linear.v)})).ravel()
    rows = require_rows(wrap, y_0.size)
    gains = stationary_filter(step.dfdx, C, added, noise)
    of_gains = innovation_gate(gate, gains.innovation)
    return KalmanFilter(step, output, y_0, C, gains, of_gains, rows)


@checked
def lqg(
    estimator: KalmanFilter,
    K: ArrayLike,
    *,
    integral: Sequence[str] = (),
    delay: int = 0,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = u_0 - K x̂`, x̂ the estimate of the filter from its measurement alone.

    Of the law's inputs only `output(q, v)` is used. The state of the law is the prediction x̂; it
    starts at zero, the equilibrium. A wrong model leaves an offset in x̂ and u;
    with `integral` none in these coordinates. A measurement that
    the filter's gate rejects is flagged `GATED`; one that is doubted gives status 2, and one that
    has failed status 3 with the safe output.

    Args:
        estimator: from `kalman`; its period is the law's.
        K: (nu, nx), for example of `lqr_gain` with the same period; with integrals (nu, nx + k).
        integral: as in `feedback`, of coordinates that the measurement determines: what is counted
            is measured, not estimated.
        delay: as in `feedback`.
        options: see `LawOptions`. The prediction uses the clipped control.

    Raises:
        ShapeError: K has a wrong shape, or holds NaN.
    """
    linear = estimator.linear
    system, period = linear.system, linear.period
    if period is None:
        raise ProblemError("the filter has no period; expected one of kalman()")
    require_period(options, period, "the filter")
    options = replace(options, period=period)
    action = linear_action(linear, K, integral, delay, options)
    of_y = _measured_rows(estimator, action.E, integral)
    states = {"x": np.zeros(linear.nx)} | action.states
    if estimator.gate is not None:
        states["gate"] = estimator.gate0

    def equations(at: LawInputs) -> Command:
        y = evaluate(estimator.output, {"q": at.q, "v": at.v})
        memory = at.z.get("gate", ca.SX(0, 1))
        x, decision = estimator.correct(at.z["x"], ca.SX(y), memory)
        u = action.control(x, ca.SX(linear.u), at.z)
        counted = of_y @ estimator.deviation(at.z["x"], y, decision.used)
        predicted = estimator.predict(x, action.acting(u, at.z))
        return Command(
            u=u,
            a=caused_acceleration(system, at, u, options),
            z_next={"x": predicted, "gate": decision.memory} | action.next_states(counted, u, at.z),
            attainable=ca.logic_not(decision.doubted),
            gated=ca.logic_not(decision.used),
            trusted=ca.logic_not(decision.failed),
            error=-system.difference(linear.q, at.q),
        )

    notes = {
        "law": "LQG on the constraint manifold",
        "measured": f"{estimator.y_0.size} of {linear.nx} numbers",
    }
    return make_law(
        system,
        "lqg",
        equations,
        LawInterface(tracked=deviations(system), states=states, closes_state=False, notes=notes),
        options,
    )


def _measured_rows(estimator: KalmanFilter, E: Array, names: Sequence[str]) -> ca.DM:
    """Return G (k, ny) with `E x = G (y - y_0)`.

    Raises:
        ProblemError: the measurement does not determine a coordinate.
    """
    G = E @ np.linalg.pinv(estimator.C)
    missed = np.abs(G @ estimator.C - E).max(axis=1, initial=0.0)
    for name, row, miss in zip(names, E, missed, strict=True):
        if miss > MEASURED * np.abs(row).max(initial=0.0):
            raise ProblemError(
                f"integral action on '{name}': the filter's measurement does not determine it; "
                "expected coordinates that are measured, as by encoders()"
            )
    return ca.DM(G)
