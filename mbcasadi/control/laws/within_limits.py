"""Any law within its limits: the feasible command whose motion is nearest to the law's.

Where motors are strong enough the law is unchanged. Where they are not, clipping u entry by
entry changes the motion in an arbitrary way. The QP of inverse dynamics selects instead the
motion with the nearest acceleration, with loops, passive joints and force limits included.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.options import CONTACT_RANK_TOL
from mbcasadi.control.inverse_dynamics.parts.missed_tasks import missed_flag
from mbcasadi.control.inverse_dynamics.residuals import RESIDUALS
from mbcasadi.control.law_interface.fallback import CORE, Core
from mbcasadi.control.law_interface.law import Law
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions, require_period
from mbcasadi.control.law_interface.signals import with_components
from mbcasadi.control.laws.desired_acceleration_task import desired_acceleration_task
from mbcasadi.control.tasks.task import Task, require_task
from mbcasadi.description import Controller, LeastDistanceStages
from mbcasadi.description.status import LIMITED_LAW_STATUS, Flag, Status
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import clamp
from mbcasadi.qp.solver import controller_fun
from mbcasadi.shapes import require_kind, require_positive
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.parameter_inputs import configuration_of

KINETIC_SHARE = 1e-3
"""Weight of the kinetic measure beside a task of weight one: it determines the free motions."""


@checked
def within_limits(
    law: Law,
    *,
    closeness: Task | None = None,
    kinetic_weight: float | None = None,
    torque_weight: float = 1e-6,
    force_limits: ArrayLike | None = None,
    tolerance: float = 1e-6,
    solver: str = "daqp",
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return the law whose u minimises `‖a - a_law‖²` over what limits and constraints allow.

    `½ w_k (a - a_law)ᵀ M (a - a_law) + ½ ‖J (a - a_law)‖²_W + ½ r_p ‖p - p_law‖²` with
    `M a + h = p-forces + Aᵀ lam`, `A a + c = 0`; `a_law` is `Law.desired`, `p_law` the actuator
    forces of the law's u within its limits, which select among forces that cause no motion.
    Without `closeness` the measure is Gauss's: the kinetic energy of the difference, in any units.
    With a task, its rows J have priority: a tool that should stay on its path while joints deviate.

    Where the law is within all limits, u is the law's, bit for bit. Where they bind, the bias by
    r_p is about `r_p / (T² W)`, T the acceleration per force. The signature is the law's own; z is
    the law's state, then the QP's. Status: 0 the law's own control; 1 limits bind, u is
    the nearest; 2 the law's own test failed, u gives the nearest motion; 3 bad input; 4 failed:
    the law's arithmetic, or the QP. With 3 and 4 u is the safe output of the law. The residual is
    the law's, then the QP's five.

    Args:
        law: any law of this package.
        closeness: rows in which accelerations are compared, with their weight; its gains and its
            reference have no effect.
        kinetic_weight: w_k; 1 without `closeness`, 1e-3 beside it by default.
        torque_weight: r_p, positive.
        force_limits: (nu, 2) of actuator forces; the model's by default.
        tolerance, solver: as in `InverseDynamicsQP`.
        options: limits of u, the law's by default; see `LawOptions`. The name is the law's with
            `_within_limits` by default.

    Raises:
        ProblemError: the options contradict themselves; a law that reads a table or holds a QP.
    """
    require_kind("law", law, Law, "a function of control.laws makes one")
    if closeness is not None:
        require_task("closeness", closeness)
    if kinetic_weight is None:
        kinetic_weight = KINETIC_SHARE if closeness is not None else 1.0
    require_positive(kinetic_weight=kinetic_weight)
    inner = law.controller
    if inner.stages is not None or not inner.function.is_a("SXFunction"):
        raise ProblemError(
            f"law '{inner.name}' reads a table or holds a QP; expected one of plain arithmetic"
        )
    require_period(options, inner.period, f"law '{inner.name}'")
    limits = options.ctrl_limits
    qp = InverseDynamicsQP(
        law.system,
        [desired_acceleration_task(law.system, closeness, kinetic_weight)],
        torque_weight=torque_weight,
        torque_reference=True,
        ctrl_limits=np.column_stack([inner.u_min, inner.u_max]) if limits is None else limits,
        force_limits=force_limits,
        rank_tol=CONTACT_RANK_TOL if options.rank_tol is None else options.rank_tol,
        tolerance=tolerance,
        period=inner.period,
        servo_plant="start",  # the law's controls mean forces at the start of a tick
        solver=solver,
        fallback="zero",  # not used: the law's own safe output is
        name=options.name or f"{inner.name}_within_limits",
    )
    wrap = _Wrap(law, qp)
    stages = LeastDistanceStages(wrap.build(), wrap.finish())
    function = controller_fun(qp.name, stages, solver)
    return replace(law, controller=wrap.controller(function, stages), make_desired=wrap.desired)


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
    def finish_from_carry(self) -> ca.Function:
        """The QP's last stage, which reads no inputs."""
        finish = self.qp.stages.finish_from_carry
        assert finish is not None
        return finish

    def inputs(self) -> dict[str, ca.SX]:
        """Return symbols of the law's inputs; z is followed by that of the QP."""
        f = self.law.function
        sizes = {name: f.numel_in(name) for name in f.name_in()}
        sizes["z"] += self.qp.z0.size
        return {name: ca.SX.sym(name, size) for name, size in sizes.items()}

    def law_inputs(self, inputs: Mapping[str, ca.SX]) -> list[ca.SX]:
        """Return the law's own inputs."""
        z = inputs["z"][: self.law.controller.z0.size, 0]
        return [*({**inputs, "z": z}).values()]

    def core(self, inputs: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
        """Return the outputs of the law's equations by name."""
        core = self.law.core
        return dict(zip(CORE, core.function.call(core.own(inputs)), strict=True))

    @property
    def safe_core(self) -> Core:
        """The law's core with the limits of the QP."""
        safe, stages = self.law.core.safe, self.qp.stages
        limited = replace(safe, u_min=stages.u_min, u_max=stages.u_max)
        return replace(self.law.core, safe=limited)

    def build(self) -> ca.Function:
        """Return the stage that evaluates the law, and builds the QP around its output."""
        inputs = self.inputs()
        core = self.core(inputs)
        limits = self.law.controller.u_min, self.law.controller.u_max
        u_law = clamp(core["u"], *limits)
        a_law = self.law.desired.call(self.law_inputs(inputs))[0]
        system, nz = self.law.system, self.law.controller.z0.size
        q = configuration_of(inputs)
        actuators = actuator_model(system, self.qp.ranges, self.qp.period, q, inputs["v"], None)
        p_law = actuators.gain * u_law + actuators.bias
        mask = inputs.get("mask", ca.SX.ones(len(self.qp.mask_names)))
        own = {"ref": ca.vertcat(a_law, p_law), "mask": mask, "z": inputs["z"][nz:, 0]}
        build = self.qp.stages.qp.build
        *rows, carry = build.call([(inputs | own)[name] for name in build.name_in()])
        column = ca.vertcat(*(ca.densify(each) for each in (carry, *core.values())))
        names = self.qp.stages.qp.build.name_out()
        outputs = [*rows, column]
        return ca.Function("build", [*inputs.values()], outputs, [*inputs], names, {"cse": True})

    def finish(self) -> ca.Function:
        """Return the stage that chooses between the QP's output and the law's."""
        inputs, inner = self.inputs(), self.finish_from_carry
        sizes = [self.law.core.function.numel_out(i) for i in range(len(CORE))]
        n_carry = inner.numel_in("carry")
        column = ca.SX.sym("carry", n_carry + sum(sizes))
        solution = {
            name: ca.SX.sym(name, inner.numel_in(name)) for name in ("x", "lam_a", "active", "flag")
        }
        parts = ca.vertsplit(column[n_carry:, 0], np.cumsum([0, *sizes]).tolist())
        core = dict(zip(CORE, parts, strict=True))
        status_law, flags_law = core["status"], core["flags"]
        u_qp, z_qp, status_qp, _, residual_qp = inner.call(
            [column[:n_carry, 0], *solution.values()]
        )
        active, counts = z_qp[: inner.numel_in("active"), 0], z_qp[inner.numel_in("active") :, 0]
        unlimited = ca.logic_and(status_law == Status.SOLVED, ca.sum1(ca.fabs(active)) == 0)
        failed = ca.logic_or(status_law >= Status.BAD_INPUT, status_qp >= Status.INFEASIBLE)
        counts, nz = ca.if_else(failed, 0, counts), self.law.core.nz
        memory = inputs["z"][nz : self.law.controller.z0.size, 0]
        u = ca.if_else(unlimited, core["u"], u_qp)
        u, remembered = self.safe_core.step(core, memory, ca.logic_not(failed), u)
        keeps_status = ca.logic_or(unlimited, status_law == Status.UNATTAINABLE)
        status = ca.if_else(keeps_status, status_law, Status.SATURATED)
        status = ca.if_else(status_qp >= Status.INFEASIBLE, Status.FAILED, status)
        status = ca.if_else(status_law >= Status.BAD_INPUT, status_law, status)
        flags = ca.if_else(ca.logic_or(unlimited, failed), flags_law, Flag.SATURATED)
        flags = flags + missed_flag(counts)
        residual = ca.vertcat(core["residual"], residual_qp)
        z_next = ca.vertcat(core["z_next"], remembered, active, counts)
        outputs = [u, z_next, status, flags, residual]
        return ca.Function(
            "finish",
            [*inputs.values(), column, *solution.values()],
            [ca.densify(each) for each in outputs],
            [*inputs, "carry", *solution],
            self.law.function.name_out(),
            {"cse": True},
        )

    def desired(self) -> ca.Function:
        """Return the law's desired acceleration and force; the QP's state keeps its value."""
        inputs = self.inputs()
        a, f_c, z_next = self.law.desired.call(self.law_inputs(inputs))
        z_next = ca.vertcat(z_next, inputs["z"][self.law.controller.z0.size :, 0])
        names = self.law.desired.name_out()
        name = f"{self.qp.name}_desired"
        twice = {"allow_duplicate_io_names": True}  # f_c measured, and f_c desired
        return ca.Function(name, [*inputs.values()], [a, f_c, z_next], [*inputs], names, twice)

    def controller(self, function: ca.Function, stages: LeastDistanceStages) -> Controller:
        """Return the law's description, with the QP's additions."""
        inner, qp = self.law.controller, self.qp
        state = tuple(f"active.{row}" for row in qp.row_names) + qp.memory_names
        extra_components = {
            "z": state,
            "z_next": state,
            "residual": tuple(f"qp.{r}" for r in RESIDUALS),
        }
        return replace(
            inner,
            name=qp.name,
            function=function,
            inputs=with_components(inner.inputs, extra_components),
            outputs=with_components(inner.outputs, extra_components),
            u_min=qp.stages.u_min,
            u_max=qp.stages.u_max,
            z0=np.concatenate([inner.z0, qp.z0]),
            stages=stages,
            statuses=LIMITED_LAW_STATUS.texts,
            safe_statuses=LIMITED_LAW_STATUS.safe,
            notes=inner.notes | {"limits": "nearest feasible acceleration by a QP"},
            emergency=self.safe_core.safe.emergency(self.law.core.nz),
            monitor=self._monitor(),
        )

    def _monitor(self) -> ca.Function | None:
        monitor = self.law.controller.monitor
        if monitor is None:
            return None
        inputs = self.inputs()
        values = dict(zip(inputs, self.law_inputs(inputs), strict=True))
        outputs = monitor.call([values[name] for name in monitor.name_in()])
        return ca.Function("monitor", [*inputs.values()], outputs, [*inputs], monitor.name_out())
