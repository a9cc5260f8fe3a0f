"""Tracking with unknown masses: the law of `dependent_tracking`, its parameters estimated.

The model in dependent coordinates is passive, `d/dt M̄ - 2 C̄` skew [A16, Theorem 1], and along
null(A) it is linear in θ: `P (M ds/dt + C s + g - f_passive) = P (Y θ + y_0)` for admissible s. So
the adaptive law of J.-J. Slotine and W. Li (Int. J. Robotics Research 6, 1987) holds for mechanisms
with loops and passive joints, as it does for arms: the constraint force does no work on `v - s`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.law_interface.law import Array, Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.laws.dependent_coordinates import (
    desired_velocity,
    motion_interface,
    target_of,
)
from mbcasadi.control.laws.quasi_velocity_motion import gain_matrix, require_still_rows, turning_fun
from mbcasadi.description.parameters import Parameter, Parameters
from mbcasadi.dynamics.regressor import linear_parameters, parameter_sizes, reference_regressor
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import clamp, is_saturated
from mbcasadi.shapes import require_positive
from mbcasadi.system import System
from mbcasadi.system.coordinates import rates
from mbcasadi.system.parametric import carries_parameters
from mbcasadi.system.ranges import require_ranges
from mbcasadi.unknown_names import require_name

RANGE = 2.0
"""Estimates stay within this many sizes of the model's value, unless bounds are given."""

LEAST_MASS = 0.05
"""Share of its mass that a body keeps."""

MOMENTS_OF_MASS = ("mass", "com", "inertia")
"""Attributes of a body that `mass`, `first_moment` and `origin_inertia` are made from."""


@dataclass(frozen=True)
class Adaptation:
    """How estimates follow the error of a law.

    Attributes:
        gain: γ, 1/J: rate of an estimate for one watt, in sizes of its parameter and 1/s.
        leakage: 1/s, at which estimates return to the model's values (σ-modification).
        dead_zone: J, kinetic energy of the velocity error below which they rest: below what noise
            and unmodelled forces cause.
        bounds: (lower, upper) of entries by name, "body:tool:mass"; by default around the model's
            values, with masses, principal entries of inertias, armature and damping not negative.
    """

    gain: float = 1.0
    leakage: float = 0.0
    dead_zone: float = 0.0
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the numbers."""
        require_fields(self)
        require_positive(gain=self.gain)
        for name in ("leakage", "dead_zone"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ProblemError(
                    f"{name} = {getattr(self, name)}; expected a finite number of at least 0"
                )


class Estimates:
    """The parameters of a law that are estimated."""

    def __init__(
        self, system: System, theta: Parameters, options: Adaptation, period: float
    ) -> None:
        """Check bounds.

        Args:
            system: the mechanism.
            theta: what is estimated.
            options: of the user.
            period: of a tick, s.
        """
        self._options, self._period = options, period
        self._values, self.sizes = theta.values, parameter_sizes(system, theta)
        self._lower, self._upper = _bounds(theta, self.sizes, options.bounds)

    def bounded(self, theta: ca.SX) -> ca.SX:
        """Return estimates (nθ, 1) inside their bounds, whatever the state holds."""
        return clamp(theta, self._lower, self._upper)

    def next(self, theta: ca.SX, power: ca.SX, free: ca.SX, energy: ca.SX) -> ca.SX:
        """Return the estimates of the next tick, `θ̂ - period γ D² Yᵀ ε` inside their bounds.

        Args:
            theta: (nθ, 1) present ones.
            power: (nθ, 1) `Yᵀ ε`.
            free: one where u is inside its limits; else the estimates do not follow.
            energy: J, of the velocity error.
        """
        rate = -self._options.gain * ca.DM(self.sizes**2) * power
        if self._options.dead_zone:
            free = ca.logic_and(free, energy >= self._options.dead_zone)
        step = ca.if_else(free, rate, 0) + self._options.leakage * (ca.DM(self._values) - theta)
        return self.bounded(theta + self._period * step)


def require_apart(system: System, theta: Parameters) -> None:
    """Raise `ProblemError` where an estimate would replace a parameter of the input p."""
    for item in system.parameters.items:
        for estimate in theta.items:
            same = (item.kind, item.index) == (estimate.kind, estimate.index)
            mass = item.kind == "body" and item.attribute in MOMENTS_OF_MASS
            if same and (mass or item.attribute == estimate.attribute):
                raise ProblemError(
                    f"'{item.name}' is an input p of the system, and '{estimate.name}' is "
                    "estimated; leave one of them out"
                )


def _bounds(
    theta: Parameters, sizes: Array, given: Mapping[str, tuple[float, float]]
) -> tuple[Array, Array]:
    """Return the bounds (nθ,), (nθ,) of all entries.

    Raises:
        UnknownNameError: bounds of an entry that is not estimated.
        ProblemError: bounds that do not hold the model's value.
    """
    lower, upper = theta.values - RANGE * sizes, theta.values + RANGE * sizes
    lower = np.maximum(lower, [x for item in theta.items for x in _least(item)])
    for name, pair in given.items():
        require_name("estimated parameter", name, theta.names)
        place = theta.names.index(name)
        lower[place], upper[place] = pair
        value = theta.values[place]
        if not lower[place] <= value <= upper[place]:
            raise ProblemError(
                f"bounds of '{name}' are {pair}, and the model has {value:g}; expected "
                "lower <= the model's value <= upper"
            )
    return lower, upper


def _least(item: Parameter) -> list[float]:
    """Return the least physical value of each entry, where it has one of its own."""
    if item.attribute == "mass":
        return [LEAST_MASS * item.value[0]]
    if item.attribute == "origin_inertia":
        principal = [0.0] * 3
        return principal + [-np.inf] * (len(item.value) - len(principal))
    return [item.least] * len(item.value)


STATE = "theta"
"""Of the estimates in z."""


@checked
@carries_parameters
def adaptive_tracking(
    system: System,
    parameters: Sequence[str],
    *,
    kp: ArrayLike = 10.0,
    kd: ArrayLike,
    adaptation: Adaptation | None = None,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = Γ P (Y θ̂ + y_0 - f_0 - K_d ε)`, `dθ̂/dt = -γ D² Yᵀ ε`, `ε = v - s`.

    s is the admissible velocity of `dependent_tracking`,
    `Y θ + y_0 = M ds/dt + C s + g - f_passive` (`reference_regressor`), `Γ = (P B)⁺` [A16, eq. 19
    corrected] and D the sizes of the parameters.
    Where the actuators reach all of null(A),

        V = ½ εᵀ M ε + ½ |D⁻¹ (θ̂ - θ)|² / γ,   dV/dt = -εᵀ K_d ε

    for any true θ: `d/dt M̄ - 2 C̄` is skew [A16, Theorem 1]. So ε decays to zero and then the error
    does, as with `dependent_tracking`, whatever θ̂ tends to; estimates tend to θ in directions that
    the motion excites. Each is kept inside its bounds, and no V of a true θ inside them increases
    by that. Estimates rest while u is beyond its limits: the law does not act as it assumes there.
    They are the state `theta` of z.

    The law is sampled: V falls by steps where `period γ |D Yᵀ|²` is below the inertia; reduce the
    gain where u chatters. Status and residual as in `dependent_tracking`. With measured velocities
    of noise σ² the estimates drift without excitation, up to their bounds: give a `dead_zone` or a
    `leakage`; the error then stays bounded and does not vanish.

    References: `q` (nq,), `v` (nv,), `a` (nv,), on the constraints that are on.

    Args:
        system: read from a model; its rows `A(q) v = 0`.
        parameters: patterns of those to estimate, as in `linear_parameters`: "body:tool:*". The
            others have the model's values, or those of the input p.
        kp: K_p, 1/s, as in `dependent_tracking`.
        kd: K_d, N s/m or N m s/rad, as in `dependent_tracking`.
        adaptation: gain, bounds, leakage and dead zone.
        metric, control_metric: of P and of u, as in `computed_torque`.
        options: see `LawOptions`.

    Raises:
        UnknownNameError: no such parameter; the message lists those there are.
        ProblemError: gains that are not positive, bounds without the model's value, parameters that
            are inputs p as well, or what `make_law` refuses.
        UnsupportedFeatureError: rows that are not `A(q) v = 0`.
    """
    rank_tol = options.tolerance
    require_still_rows(system)
    theta = linear_parameters(system, parameters)
    require_apart(system, theta)
    followed = Adaptation() if adaptation is None else adaptation
    estimates = Estimates(system, theta, followed, options.sample_time)
    limits = require_ranges(system, options.ctrl_limits, None).ctrl
    speeds = rates(system)
    K_p, K_d = (
        gain_matrix("adaptive_tracking", label, gain, speeds.components)
        for label, gain in (("kp", kp), ("kd", kd))
    )
    turning, Y_of = turning_fun(system), reference_regressor(system, parameters)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric, control_metric=control_metric)
        s, s_dot, error = desired_velocity(m, K_p, turning)
        epsilon = m.joint_rate(m.P @ m.weighted_rate(at.v - s))
        Y, rest = Y_of(at.q, at.v, s, s_dot)
        estimate = estimates.bounded(at.z[STATE])
        force = m.weighted_force(Y @ estimate + rest - K_d @ epsilon)
        command = m.command(force, m.acceleration(force), error, target_of(m))
        u = command.u
        free = ca.logic_not(is_saturated(u, clamp(u, limits[:, 0], limits[:, 1])))
        energy = ca.bilin(system.mass_matrix(at.q), epsilon, epsilon) / 2
        following = estimates.next(estimate, Y.T @ epsilon, free, energy)
        return replace(command, z_next={STATE: following})

    notes = {
        "law": "adaptive tracking of dependent coordinates by passivity [A16, Theorem 1]",
        "estimates": ", ".join(theta.names),
    }
    motion = motion_interface(system, notes)
    interface = replace(motion, states={STATE: theta.values})
    return make_law(system, "adaptive_tracking", equations, interface, options)
