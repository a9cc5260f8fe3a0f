"""Feedback of the measured constraint force, sampled.

    u_F = F_d + G_F e + G_I ∫ e dt,   e = F_d - F   [A05, eq. 52]

A constraint force follows at once: F is u_F plus the effect of model errors. But F is measured
while the control of the sample before acts. With `d` samples
between a control and the measurement that shows it, and period T, the error obeys

    (z - 1) z^d + G_F (z - 1) + G_I T z = 0

where the integral includes the newest error. For d = 1 that is stable iff `G_F < 1` and
`G_I T < 2 (1 - G_F)`. (The paper's continuous loop has no such limit: corrected.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.law_interface.law import Array, LawInterface
from mbcasadi.control.law_interface.options import LawOptions
from mbcasadi.control.laws.actuated_force import Allocation, PrescribedForce
from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import clamp
from mbcasadi.shapes import (
    require_kind,
    require_numbers,
    require_positive,
    require_texts,
    require_whole,
)
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.system.ranges import require_ranges
from mbcasadi.system.sizes import residual_sizes

LAM_UNIT = "N or N m"
NOTHING = ca.SX(0, 1)


@dataclass(frozen=True)
class ForceGains:
    """Gains of the force loop.

    Attributes:
        proportional: G_F, no unit.
        integral: G_I, 1/s.
        delay: samples between a control and the measurement that shows it, 1 at least.
        allow_unstable: build the law even if the sampled loop diverges.
        rows: names of the multipliers that are controlled, as "pin.2"; None for the whole force.
    """

    proportional: float = 0.0
    integral: float = 0.0
    delay: int = 1
    allow_unstable: bool = False
    rows: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        if self.rows is not None:
            require_texts("rows", self.rows)

    @property
    def feedback(self) -> bool:
        """Whether the loop uses a measured force."""
        return self.proportional > 0 or self.integral > 0

    @checked
    def radius(self, period: float) -> float:
        """Return the largest |z| of the sampled loop; below one the error decays."""
        require_positive(period=period)
        if not self.integral:
            return float(self.proportional ** (1 / self.delay))
        p, i = self.proportional, self.integral * period
        tail = [1.0, -1.0] + [0.0] * self.delay  # (z - 1) z^delay
        tail[-2] += p + i
        tail[-1] -= p
        return float(np.abs(np.roots(tail)).max())


@dataclass(frozen=True)
class ForceLoop:
    """Force feedback of one law, checked.

    Attributes:
        system: the mechanism.
        gains: of the loop.
        rows: which multipliers are controlled; None for the whole constraint force.
        period: s.
        limits: (nu, 2) of u.
    """

    system: System
    gains: ForceGains
    rows: tuple[int, ...] | None
    period: float
    limits: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the multipliers that the reference holds."""
        every = row_names(self.system)
        return every if self.rows is None else tuple(every[i] for i in self.rows)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slice `force.lam` of the reference."""
        return (Slot("force.lam", self.names, (LAM_UNIT,) * len(self.names)),)

    @property
    def tracked(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of each multiplier's error; none without a measured force."""
        if not self.gains.feedback:
            return ()
        return tuple((f"lam.{name}", LAM_UNIT) for name in self.names)

    @property
    def states(self) -> dict[str, Array]:
        """The integral's initial value."""
        size = self.system.nv if self.rows is None else len(self.rows)
        return {"integral": np.zeros(size)} if self.gains.feedback else {}

    def beside(self, motion: LawInterface) -> LawInterface:
        """Return the interface of a law that controls a motion and the force."""
        return replace(
            motion,
            slots=(*motion.slots, *self.slots),
            tracked=(*motion.tracked, *self.tracked),
            states=self.states,
            measures_force=self.gains.feedback,
        )

    def tick(self, allocation: Allocation) -> "RegulatedForce":
        """Return the actuators' force, and the loop's next state.

        Args:
            allocation: of the force of the motion, `M a + h`.
        """
        if self.rows is None:
            return _whole_force(self, allocation)
        return _multipliers(self, allocation, list(self.rows))


@dataclass(frozen=True)
class RegulatedForce:
    """Outcome of one tick of the force loop.

    Attributes:
        force: of the actuators.
        integral: next `G_I ∫ e dt`: force in joint space, or multipliers.
        error, target: (k, 1) of the multipliers, those of least norm; empty without feedback.
    """

    force: PrescribedForce
    integral: ca.SX
    error: ca.SX
    target: ca.SX


def force_loop(
    system: System,
    gains: ForceGains | None,
    options: LawOptions,
) -> ForceLoop:
    """Return the loop, checked.

    Args:
        system: the mechanism.
        gains: of the feedback; None is feedforward alone.
        options: period, and limits of u.

    Raises:
        ProblemError: gains out of range, or a sampled loop that diverges.
        UnknownNameError: no such row; the message lists them.
    """
    checked = ForceGains() if gains is None else gains
    require_kind("gains", checked, ForceGains, "ForceGains(proportional, integral)")
    period, rows = options.sample_time, checked.rows
    require_stable(checked, period)
    every = row_names(system)
    for name in rows or ():
        require_name_of(system, "constraint row", name, every)
    places = None if rows is None else tuple(every.index(name) for name in rows)
    limits = require_ranges(system, options.ctrl_limits, None).ctrl
    return ForceLoop(system, checked, places, period, limits)


def require_stable(gains: ForceGains, period: float) -> None:
    """Raise `ProblemError` unless the gains are in range and the sampled loop converges."""
    require_positive(period=period)
    require_numbers(proportional=gains.proportional, integral=gains.integral)
    require_whole(1, delay=gains.delay)  # a measured force is at least one sample late
    radius = gains.radius(period)
    if radius >= 1 and gains.feedback and not gains.allow_unstable:
        raise ProblemError(
            f"the force loop with G_F = {gains.proportional:g}, G_I = {gains.integral:g} 1/s and "
            f"a delay of {gains.delay} at a period of {period:g} s diverges: |z| = {radius:.3g}. "
            "Take smaller ones; a delay of 1 requires G_F < 1 and G_I < 2 (1 - G_F) / period"
        )


def row_names(system: System) -> tuple[str, ...]:
    """Return a name for each row: that of its constraint, and its place in it."""
    names = system.constraint_names
    return tuple(f"{name}.{i - names.index(name)}" for i, name in enumerate(names))


def _whole_force(loop: ForceLoop, allocation: Allocation) -> RegulatedForce:
    """Control all of `F_d = Aᵀ lam_d`; the integral is projected on range(Aᵀ) at every tick."""
    m = allocation.mechanism
    at = m.at
    desired = m.A.T @ at.ref["force.lam"]
    if not loop.gains.feedback:
        return RegulatedForce(allocation.with_force(desired), NOTHING, NOTHING, NOTHING)
    error = desired - m.constraint_part(m.weighted_force(at.f_c))
    integral_now = m.constraint_part(m.weighted_force(at.z["integral"]))
    force, integral = _feedback_force(loop, allocation.with_force, desired, error, integral_now)
    lam = m.multipliers(ca.horzcat(error, desired))
    return RegulatedForce(force, m.joint_force(integral), lam[:, 0], lam[:, 1])


def _multipliers(loop: ForceLoop, allocation: Allocation, rows: list[int]) -> RegulatedForce:
    """Control some multipliers; the others follow from the least force.

    For rows that are off the desired value is zero, and their integral is reset.
    """
    m = allocation.mechanism
    on = m.at.rows[rows]
    T = m.multipliers(ca.SX.eye(m.system.nv))[rows, :]
    desired = on * m.at.ref["force.lam"]

    def force_with(lam: ca.SX) -> PrescribedForce:
        return allocation.with_multipliers(T, lam, residual_sizes(m.system)[rows])

    if not loop.gains.feedback:
        return RegulatedForce(force_with(desired), NOTHING, NOTHING, NOTHING)
    error = desired - on * (T @ m.weighted_force(m.at.f_c))
    integral_now = on * m.at.z["integral"]
    force, integral = _feedback_force(loop, force_with, desired, error, integral_now)
    return RegulatedForce(force, integral, error, desired)


def _feedback_force(
    loop: ForceLoop,
    force_with: Callable[[ca.SX], PrescribedForce],
    desired: ca.SX,
    error: ca.SX,
    integral_now: ca.SX,
) -> tuple[PrescribedForce, ca.SX]:
    """Return the force with `desired + G_F e + integral`, and the integral.

    A step of the integrator that would increase the clipped part of u is not taken; one that
    decreases it is.
    """
    base = desired + loop.gains.proportional * error
    force = force_with(base + integral_now)
    if not loop.gains.integral:
        return force, integral_now
    stepped = integral_now + loop.gains.integral * loop.period * error
    take = _saturation(force_with(base + stepped).u, loop.limits) <= _saturation(
        force.u, loop.limits
    )
    integral = ca.if_else(take, stepped, integral_now)
    return force_with(base + integral), integral


def _saturation(u: ca.SX, limits: Array) -> ca.SX:
    """Return the squared length of the part of u beyond the limits."""
    return ca.sumsqr(u - clamp(u, limits[:, 0], limits[:, 1]))
