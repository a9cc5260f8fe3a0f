"""A linear Kalman filter on the constraint manifold, and LQG: the regulator on its estimate.

    correct:  x ← x + L (y - y_0 - C x)        y = output(q, v), the measurement
    predict:  x ← A x + B (u - u_0)            exact hold, u as clipped to its limits

x are the free coordinates only, so the estimate never leaves the manifold (to first order), and a
loop's redundant joints follow from the measured ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.law_interface.law import Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.safe_inputs import close_inputs
from mbcasadi.control.regulators.discrete import discretize
from mbcasadi.control.regulators.feedback import (
    caused_acceleration,
    deviations,
    finite_matrix,
    require_continuous,
)
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.lqr import require_equilibrium
from mbcasadi.control.regulators.observability import require_detectable
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.control.regulators.riccati import Filter, sampled_noise, stationary_filter
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import clamp
from mbcasadi.shapes import require_name, require_positive, weight
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import rate_names, rates
from mbcasadi.system.ranges import require_ranges


@dataclass(frozen=True)
class KalmanFilter:
    """A stationary filter: its matrices, and one tick of it as a Function.

    Attributes:
        linear: the discrete system of the prediction.
        output: (q, [v]) → (y), the measurement.
        y_0: (ny,) its value at the operating point.
        C: (ny, nx) `δy = C x`.
        gains: L, covariances and poles.
    """

    linear: Linearization
    output: ca.Function
    y_0: Array
    C: Array
    gains: Filter

    @property
    def function(self) -> ca.Function:
        """(x, y, u) → (x_next, q, v): correct with y, predict with u; the estimate as a state.

        `x` is the prediction for this tick, `x_next` the one for the next; (q, v) the corrected
        estimate.
        """
        linear = self.linear
        x, y = ca.SX.sym("x", linear.nx), ca.SX.sym("y", self.y_0.size)
        u = ca.SX.sym("u", linear.nu)
        estimate = self.correct(x, y)
        q = linear.system.integrate(linear.q, ca.DM(linear.to_dq) @ estimate)
        v = ca.DM(linear.v) + ca.DM(linear.to_dv) @ estimate
        return ca.Function(
            "kalman",
            [x, y, u],
            [ca.densify(e) for e in (self.predict(estimate, u), q, v)],
            ["x", "y", "u"],
            ["x_next", "q", "v"],
        )

    def correct(self, x: ca.SX, y: ca.SX) -> ca.SX:
        """Return `x + L (y - y_0 - C x)`."""
        return x + ca.DM(self.gains.L) @ (y - self.y_0 - ca.DM(self.C) @ x)

    def predict(self, x: ca.SX, u: ca.SX) -> ca.SX:
        """Return `A x + B (u - u_0)`."""
        return ca.DM(self.linear.dfdx) @ x + ca.DM(self.linear.dfdu) @ (u - self.linear.u)


def kalman(
    linear: Linearization,
    output: ca.Function,
    W: ArrayLike,
    V: ArrayLike,
    *,
    period: float = 1e-3,
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

    Raises:
        ShapeError: a wrong shape, or NaN.
        ProblemError: no equilibrium; a mode that grows or drifts and is unobservable in y (it is
            named); a mode on the border of stability without noise.
    """
    require_continuous(linear)
    require_equilibrium(linear)
    require_positive(period=period)
    C = linear.output_matrix(output)
    noise = weight("V", V, C.shape[0], definite=True)
    disturbance = weight("W", W, 2 * linear.system.nv)
    require_detectable(linear, C)
    F = np.hstack([linear.from_dq, linear.from_dv])
    step = discretize(linear, period)
    added = sampled_noise(linear.dfdx, F @ disturbance @ F.T, period)
    y_0 = np.array(evaluate(output, {"q": ca.DM(linear.q), "v": ca.DM(linear.v)})).ravel()
    return KalmanFilter(step, output, y_0, C, stationary_filter(step.dfdx, C, added, noise))


def lqg(
    estimator: KalmanFilter,
    K: ArrayLike,
    *,
    ctrl_limits: ArrayLike | None = None,
    name: str = "lqg",
) -> Law:
    """Return `u = u_0 - K x̂`, x̂ the estimate of the filter from its measurement alone.

    Of the law's inputs only `output(q, v)` is used. The state of the law is the prediction x̂; it
    starts at zero, the equilibrium. A wrong model leaves an offset in x̂ and u.

    Args:
        estimator: from `kalman`; its period is the law's.
        K: (nu, nx), for example of `lqr_gain` with the same period.
        ctrl_limits, name: as in `make_law`. The prediction uses the clipped control.

    Raises:
        ShapeError: K has a wrong shape, or holds NaN.
    """
    linear = estimator.linear
    system, period = linear.system, linear.period
    if period is None:
        raise ProblemError("the filter has no period; expected one of kalman()")
    gain = finite_matrix("K", K, (linear.nu, linear.nx))
    limits = require_ranges(system, ctrl_limits, None).ctrl

    def equations(at: LawInputs) -> Command:
        y = evaluate(estimator.output, {"q": at.q, "v": at.v})
        x = estimator.correct(at.z["x"], ca.SX(y))
        u = ca.SX(linear.u) - ca.DM(gain) @ x
        applied = clamp(u, limits[:, 0], limits[:, 1])
        return Command(
            u=u,
            a=caused_acceleration(Mechanism(system, close_inputs(system, at)[0]), u),
            z_next={"x": estimator.predict(x, applied)},
            error=-system.difference(linear.q, at.q),
        )

    return make_law(
        system,
        name,
        equations,
        closes_state=False,
        slots=(),
        states={"x": np.zeros(linear.nx)},
        tracked=deviations(system),
        ctrl_limits=ctrl_limits,
        period=period,
        notes={
            "law": "LQG on the constraint manifold",
            "measured": f"{estimator.y_0.size} of {linear.nx} numbers",
        },
    )


def encoders(system: System, positions: Sequence[str], speeds: Sequence[str] = ()) -> ca.Function:
    """Return (q, v) → (y): positions, then speeds, of coordinates given by name.

    Args:
        system: the mechanism.
        positions, speeds: joints that have one coordinate, or the `coordinate_names` of a system
            that is given by equations.

    Raises:
        UnknownNameError: an unknown name, or a ball or free joint, whose position has several
            coordinates.
        ProblemError: nothing is measured.
    """
    if not (positions or speeds):
        raise ProblemError("nothing is measured; expected the name of a joint")
    names, all_rates = list(_places(system)), list(rate_names(system))
    for name in positions:
        require_name("coordinate", name, names)
    for name in speeds:
        require_name("coordinate", name, all_rates)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    places = _places(system)
    y = ca.vertcat(*(q[places[n]] for n in positions), *(v[all_rates.index(n)] for n in speeds))
    return ca.Function("encoders", [q, v], [y], ["q", "v"], ["y"])


def _places(system: System) -> dict[str, int]:
    """Return the row of q of each coordinate that is a plain number."""
    if system.tree is None:
        names = rates(system).components
        return dict(zip(names, range(system.nq), strict=False)) if system.nq == system.nv else {}
    return {j.name: j.qpos for j in system.tree.joints if j.kind in ("hinge", "slide")}
