"""Any law within its limits: the feasible command whose motion is nearest to the law's.

Where motors are strong enough the law is unchanged. Where they are not, clipping u entry by
entry changes the motion in an arbitrary way. The QP of inverse dynamics selects instead the
motion with the nearest acceleration, with loops, passive joints and force limits included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control import guard
from mbcasadi.control.actuation import drive
from mbcasadi.control.check import RESIDUALS
from mbcasadi.control.inverse_dynamics import RANK_TOL, InverseDynamicsQP
from mbcasadi.control.laws.law import Law
from mbcasadi.control.laws.making import BAD_INPUT, FAILED, OK, SATURATED, UNATTAINABLE
from mbcasadi.control.laws.wish_task import wish_task
from mbcasadi.control.setup import require_positive
from mbcasadi.control.solver import controller_fun
from mbcasadi.control.stages import INFEASIBLE
from mbcasadi.control.tasks import Task
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.errors import ProblemError

KINETIC_SHARE = 1e-3
"""Weight of the kinetic measure beside a task of weight one: it determines the free motions."""


def within_limits(
    law: Law,
    *,
    closeness: Task | None = None,
    kinetic_weight: float | None = None,
    torque_weight: float = 1e-6,
    ctrl_limits: ArrayLike | None = None,
    force_limits: ArrayLike | None = None,
    rank_tol: float = RANK_TOL,
    tolerance: float = 1e-6,
    solver: str = "daqp",
    name: str | None = None,
) -> Law:
    """Return the law whose u minimises `‖a - a_law‖²` over what limits and constraints allow.

    `½ w_k (a - a_law)ᵀ M (a - a_law) + ½ ‖J (a - a_law)‖²_W + ½ r_p ‖p - p_law‖²` with
    `M a + h = p-forces + Aᵀ lam`, `A a + c = 0`; `a_law` is `Law.desired`, `p_law` the actuator
    forces of the law's u within its limits, which select among forces that cause no motion.
    Without `closeness` the measure is Gauss's: the kinetic energy of the difference, in any units.
    With a task, its rows J have priority: a tool that should stay on its path while joints deviate.

    Where the law is within all limits, u is the law's, bit for bit. Where they bind, the bias by
    r_p is about `r_p / (T² W)`, T the acceleration per force. The signature is the law's own; z is
    the law's state, then the QP's active set. Status: 0 the law's own control; 1 limits bind, u is
    the nearest; 2 the law's own test failed, u gives the nearest motion; 3 bad input; 4 failed:
    the law's arithmetic, or the QP, and then u is the law's, clipped to its limits. The residual
    is the law's, then the QP's five.

    Args:
        law: any law of this package.
        closeness: rows in which accelerations are compared, with their weight; its gains and its
            reference have no effect.
        kinetic_weight: w_k; 1 without `closeness`, 1e-3 beside it by default.
        torque_weight: r_p, positive.
        ctrl_limits: (nu, 2); the law's by default.
        force_limits: (nu, 2) of actuator forces; the model's by default.
        rank_tol, tolerance, solver: as in `InverseDynamicsQP`.
        name: a C identifier; the law's with `_within_limits` by default.

    Raises:
        ProblemError: the options contradict themselves; a law that reads a table or holds a QP.
    """
    if kinetic_weight is None:
        kinetic_weight = KINETIC_SHARE if closeness is not None else 1.0
    require_positive(kinetic_weight=kinetic_weight)
    own = law.controller
    if own.stages is not None or not own.function.is_a("SXFunction"):
        raise ProblemError(
            f"law '{own.name}' reads a table or holds a QP; expected one of plain arithmetic"
        )
    limits = np.column_stack([own.u_min, own.u_max]) if ctrl_limits is None else ctrl_limits
    qp = InverseDynamicsQP(
        law.system,
        [wish_task(law.system, closeness, kinetic_weight)],
        torque_weight=torque_weight,
        torque_reference=True,
        ctrl_limits=limits,
        force_limits=force_limits,
        rank_tol=rank_tol,
        tolerance=tolerance,
        period=own.period,
        solver=solver,
        name=f"{own.name}_within_limits" if name is None else name,
    )
    wrap = _Wrap(law, qp)
    stages = LeastDistanceStages(wrap.build(), wrap.finish())
    function = controller_fun(qp.name, stages, solver)
    return replace(law, controller=wrap.controller(function, stages), desired=wrap.desired())


@dataclass(frozen=True)
class _Wrap:
    """A law and the QP behind it.

    Attributes:
        law: gives the desired acceleration.
        qp: finds the nearest feasible one.
    """

    law: Law
    qp: InverseDynamicsQP

    @property
    def inner(self) -> LeastDistanceStages:
        """The QP's stages."""
        return self.qp.stages.parts

    def inputs(self) -> dict[str, ca.SX]:
        """Return symbols of the law's inputs; z is followed by the active set."""
        f = self.law.function
        sizes = {name: f.numel_in(name) for name in f.name_in()}
        sizes["z"] += self.qp.z0.size
        return {name: ca.SX.sym(name, size) for name, size in sizes.items()}

    def own(self, given: Mapping[str, ca.SX]) -> list[ca.SX]:
        """Return the law's own inputs."""
        z = given["z"][: self.law.controller.z0.size, 0]
        return [*({**given, "z": z}).values()]

    def build(self) -> ca.Function:
        """Return the stage that evaluates the law and assembles the QP for its acceleration."""
        given = self.inputs()
        answer = self.law.function.call(self.own(given))
        wish = self.law.desired.call(self.own(given))[0]
        system, nz = self.law.system, self.law.controller.z0.size
        q, v = given["q"], given["v"]
        driven = drive(system, self.qp.setup.ranges, self.qp.period, q, v, None)
        p_law = driven.gain * answer[0] + driven.bias
        mask = given.get("mask", ca.SX.ones(len(self.qp.mask_names)))
        ref = ca.vertcat(wish, p_law)
        *posed, carry = self.inner.build.call([q, v, ref, mask, given["z"][nz:, 0]])
        column = ca.vertcat(*(ca.densify(each) for each in (carry, *answer)))
        names = self.inner.build.name_out()
        outputs = [*posed, column]
        return ca.Function("build", [*given.values()], outputs, [*given], names, {"cse": True})

    def finish(self) -> ca.Function:
        """Return the stage that chooses between the QP's control and the law's."""
        given, inner = self.inputs(), self.inner.finish
        sizes = [self.law.function.numel_out(i) for i in range(4)]
        n_carry = inner.numel_in("carry")
        column = ca.SX.sym("carry", n_carry + sum(sizes))
        found = {
            name: ca.SX.sym(name, inner.numel_in(name)) for name in ("x", "lam_a", "active", "flag")
        }
        u_law, z_law, status_law, residual_law = ca.vertsplit(
            column[n_carry:, 0], np.cumsum([0, *sizes]).tolist()
        )
        idle = [given["q"], given["v"]]  # `finish` of the QP reads its carry instead
        idle += [ca.SX.zeros(inner.numel_in(name)) for name in ("ref", "mask", "z")]
        u_qp, active, status_qp, residual_qp = inner.call(
            [*idle, column[:n_carry, 0], *found.values()]
        )
        free = ca.logic_and(status_law == OK, ca.sum1(ca.fabs(active)) == 0)
        lost = ca.logic_or(status_law >= BAD_INPUT, status_qp >= INFEASIBLE)
        stages = self.qp.stages
        u = ca.if_else(ca.logic_or(free, lost), u_law, u_qp)
        u = guard.clamped(u, stages.u_min, stages.u_max)
        kept = ca.logic_or(free, status_law == UNATTAINABLE)
        status = ca.if_else(kept, status_law, SATURATED)
        status = ca.if_else(status_qp >= INFEASIBLE, FAILED, status)
        status = ca.if_else(status_law >= BAD_INPUT, status_law, status)
        residual = ca.vertcat(residual_law, residual_qp)
        outputs = [u, ca.vertcat(z_law, active), status, residual]
        return ca.Function(
            "finish",
            [*given.values(), column, *found.values()],
            [ca.densify(each) for each in outputs],
            [*given, "carry", *found],
            self.law.function.name_out(),
            {"cse": True},
        )

    def desired(self) -> ca.Function:
        """Return the law's desired acceleration and force; the active set is unchanged."""
        given = self.inputs()
        a, f_c, z_next = self.law.desired.call(self.own(given))
        z_next = ca.vertcat(z_next, given["z"][self.law.controller.z0.size :, 0])
        names = self.law.desired.name_out()
        name = f"{self.qp.name}_desired"
        twice = {"allow_duplicate_io_names": True}  # f_c measured, and f_c desired
        return ca.Function(name, [*given.values()], [a, f_c, z_next], [*given], names, twice)

    def controller(self, function: ca.Function, stages: LeastDistanceStages) -> Controller:
        """Return the law's description, with the QP's additions."""
        own, qp = self.law.controller, self.qp
        active = tuple(f"active.{row}" for row in qp.row_names)
        more = {"z": active, "z_next": active, "residual": tuple(f"qp.{r}" for r in RESIDUALS)}
        return replace(
            own,
            name=qp.name,
            function=function,
            inputs=_extended(own.inputs, more),
            outputs=_extended(own.outputs, more),
            u_min=qp.stages.u_min,
            u_max=qp.stages.u_max,
            z0=np.concatenate([own.z0, qp.z0]),
            stages=stages,
            notes=own.notes | {"limits": "nearest feasible acceleration by a QP"},
            monitor=self._monitor(),
        )

    def _monitor(self) -> ca.Function | None:
        monitor = self.law.controller.monitor
        if monitor is None:
            return None
        given = self.inputs()
        values = dict(zip(given, self.own(given), strict=True))
        outputs = monitor.call([values[name] for name in monitor.name_in()])
        return ca.Function("monitor", [*given.values()], outputs, [*given], monitor.name_out())


def _extended(signals: Sequence[Signal], more: Mapping[str, tuple[str, ...]]) -> tuple[Signal, ...]:
    """Return the signals, some with further components."""
    longer = []
    for signal in signals:
        added = more.get(signal.name, ())
        names = (*signal.components, *added)
        longer.append(Signal(signal.name, names, (*signal.units, *[""] * len(added))))
    return tuple(longer)
