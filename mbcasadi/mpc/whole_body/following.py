"""From a plan to the references of inverse dynamics at a moment within it.

    (plan, age, t) → (ref, [mask]),   plan = (x_0 … x_{N-1}, u_0 … u_{N-1}, [lengths], d, [walk])

With measured touch-down a plan ends with the contacts that stand in each of its intervals.

The motion under u_k is that of the plan's own step: acceleration a_k and contact forces are
constant over an interval, `v = v_k + τ a_k`, `q = q_k ⊕ τ (v_k + h a_k)`. Behind its last interval
the plan's last state is held.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.contacts.constraints import contact_force_fun
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.parts.force_feedback import MEASURED
from mbcasadi.control.inverse_dynamics.parts.rigid_springs import spring_map
from mbcasadi.control.tasks.axes import AXES
from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.control.tasks.task import Task
from mbcasadi.description import Contact
from mbcasadi.dynamics import forward_dynamics, inverse_dynamics
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.integrators.semi_implicit import SemiImplicitStep, motion_fun, moved_fun
from mbcasadi.mpc.legged.gait import Gait, Walk
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.mpc.whole_body.contact_mask import mask_of_contacts
from mbcasadi.mpc.whole_body.felt_contacts import FeltContacts
from mbcasadi.mpc.whole_body.tracking import tracking_fun
from mbcasadi.system import System


class Motion(NamedTuple):
    """Pose, rates and accelerations of the plan at a moment: (nq,), (nv,), (nv,)."""

    q: ca.SX
    v: ca.SX
    a: ca.SX


@dataclass(frozen=True)
class Following:
    """How a law follows the plan of a problem.

    Attributes:
        law: inverse dynamics, of the mechanism without its contacts as rows.
        ocp: the problem.
        system: of the problem, with its contacts as rows.
        contacts: of the problem, in the order of the law's.
        gait: which of them are on; None for all.
        step: of the problem.
        delay: intervals from a measurement to the first sample of a plan.
        stands: whether plans end with beginning and end of the walk.
        rule: by which measured forces change the contacts; None for the gait alone.
    """

    law: InverseDynamicsQP
    ocp: OptimalControlProblem
    system: System
    contacts: Sequence[Contact]
    gait: Gait | None
    step: SemiImplicitStep
    delay: int
    stands: bool = False
    rule: FeltContacts | None = None

    @property
    def size(self) -> int:
        """Size of a plan."""
        return self._feet_place + (self.rule is not None) * len(self.contacts) * self.ocp.horizon

    @property
    def _feet_place(self) -> int:
        """Size of all but the contacts that stand."""
        return self._motion_size + self.system.nv + 2 * self.stands

    @property
    def _motion_size(self) -> int:
        """Size of states, controls and lengths."""
        ocp, given = self.ocp, self.ocp.lengths is not None
        return (ocp.nx + ocp.nu + given) * ocp.horizon

    def function(self, name: str) -> ca.Function:
        """Return (plan, age, t, [f_measured]) → (ref, [mask])."""
        plan, age, t = ca.MX.sym("plan", self.size), ca.MX.sym("age"), ca.MX.sym("t")
        N, h = self.ocp.horizon, self.ocp.period
        k = self._number(plan, age, ROUNDING)
        begins, length = self._place(plan, k)
        end = N * h if self.ocp.lengths is None else ca.sum1(self._lengths(plan))
        ends = age > end
        tau = ca.if_else(ends, 0, ca.fmax(age - begins, 0))
        q, v, a, lam, on = self._interval(plan, k, t - age)
        given = [] if self.ocp.lengths is None else [length]
        outputs = {"ref": self._references().call([q, v, a, tau, lam, ends, *given])[0]}
        inputs = {"plan": plan, "age": age, "t": t}
        if self.rule is not None and self.gait is not None:
            forces = inputs[MEASURED] = ca.MX.sym(MEASURED, 3 * len(self.contacts))
            walk = self._walk(plan)
            on = self._felt()(on, t, walk.begin, 0 if walk.end is None else walk.end, forces)
        if self.law.mask_names:
            others = ca.MX.ones(len(self.law.mask_names) - len(self.contacts))
            outputs["mask"] = ca.vertcat(on, others)
        return ca.Function(name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])

    def _felt(self) -> ca.Function:
        """Return (on, t, begin, end, forces) → (on), with what is felt."""
        assert self.rule is not None
        assert self.gait is not None
        count = len(self.contacts)
        sizes = {"on": count, "t": 1, "begin": 1, "end": 1, MEASURED: 3 * count}
        at = {key: ca.SX.sym(key, n) for key, n in sizes.items()}
        walk = Walk(self.gait, at["begin"], at["end"] if self.stands else None)
        stands = self.rule.stands(walk, at["t"], at[MEASURED], at["on"])
        return ca.Function("felt", [*at.values()], [stands])

    def predicted(self, plan: ca.MX, q: ca.MX, v: ca.MX, age: ca.MX, t: ca.MX) -> list[ca.MX]:
        """Return the state (q, v) of time t after `delay` intervals of a plan of some age, s.

        The law follows the plan's accelerations as far as the contacts let it, and brings joints
        back to the plan, so that is how the measured state moves. Under the plan's controls it
        would move otherwise: those of servos belong to the plan's positions. On its way it has the
        rates at the end, as a step of the plan: with the mean of those at both ends, nearer to the
        law's motion, plans bring feet down half an interval early. Springs that the law
        holds as rigid come to rest: they swing several times in an interval, and from their present
        rate no plan can tell the next one.
        """
        base, h = self.law.system.at(), self.ocp.period
        moved = moved_fun(base)
        force, back = inverse_dynamics(base), tracking_fun(self.law.tasks, base, h)
        system, step = self._held()
        motion = forward_dynamics(system, treatment=step.treatment(h), derivatives=False)
        first = ca.fmax(ca.floor(age / h + 0.5), 0)
        for k in range(self.delay):
            number, start = ca.fmin(first + k, self.ocp.horizon - 1), t - age
            if self.ocp.lengths is None:
                start = t + (k - number) * h
            else:
                number = self._number(plan, age + (k + 0.5) * h, 0.0)
            q_k, v_k, a, _, on = self._interval(plan, number, start)
            begins, length = self._place(plan, number)
            tau = ca.fmax(ca.fmin(age + k * h - begins, length), 0)
            q_ref = moved(q_k, tau * (v_k + length * a))
            a = a + back(q, v, q_ref, v_k + tau * a)
            known = {"q": q, "v": v, "t": t + (k + 0.5) * h}
            known["mask"] = mask_of_contacts(system, self.contacts, on)
            known["f"] = force(q=q, v=v, a=a)["f"]
            v = v + h * motion(**{key: known[key] for key in motion.name_in()})["a"]
            q = moved(q, h * v)
        return [q, v]

    def _held(self) -> tuple[System, SemiImplicitStep]:
        """Return system and step with the springs that the law holds as further rows."""
        springs, count = self.law.rigid_springs, self.system.nc
        if springs is None:
            return self.system, self.step
        S = spring_map(self.law.system, springs)
        q, v = ca.SX.sym("q", self.system.nq), ca.SX.sym("v", self.system.nv)
        system = self.system.with_rows(q, v, A=ca.SX(ca.sparsify(ca.DM(S))))
        decay = np.concatenate([np.broadcast_to(self.step.decay, count), np.zeros(len(S))])
        return system, replace(self.step, decay=tuple(decay.tolist()))

    def _number(self, plan: ca.MX, age: ca.MX, rounding: float) -> ca.MX:
        """Return the number of the interval that a plan of some age, s, is in."""
        N, h = self.ocp.horizon, self.ocp.period
        if self.ocp.lengths is None:
            return ca.fmax(ca.fmin(ca.floor(age / h + rounding), N - 1), 0)
        return ca.densify(ca.sum1(age + rounding * h >= ca.cumsum(self._lengths(plan)[:-1])))

    def _lengths(self, plan: ca.MX) -> ca.MX:
        """Return the lengths (N,) of the intervals of a plan that has them."""
        return plan[self._motion_size - self.ocp.horizon : self._motion_size]

    def _place(self, plan: ca.MX, k: ca.MX) -> tuple[ca.MX, ca.MX | float]:
        """Return when interval k of a plan begins, s after its first sample, and its length."""
        h = self.ocp.period
        if self.ocp.lengths is None:
            return k * h, h
        lengths = self._lengths(plan)
        return ca.vertcat(0, ca.cumsum(lengths))[k], lengths[k]

    def _interval(self, plan: ca.MX, k: ca.MX, start: ca.MX) -> tuple[ca.MX, ...]:
        """Return q, v, a, multipliers and the contacts that are on of an interval.

        Args:
            plan: whose first sample is at `start`, s.
            k: number of the interval.
        """
        ocp, nq, nv = self.ocp, self.system.nq, self.system.nv
        X = ca.reshape(plan[: ocp.nx * ocp.horizon], ocp.nx, ocp.horizon)
        end = (ocp.nx + ocp.nu) * ocp.horizon
        U = ca.reshape(plan[ocp.nx * ocp.horizon : end], ocp.nu, ocp.horizon)
        x, u = X[:, k], U[:, k]
        begins, length = self._place(plan, k)
        time = start + begins + 0.5 * length
        count = len(self.contacts)
        on = ca.MX.ones(count) if self.gait is None else ca.MX(self._walk(plan).on_ground(time))
        if self.rule is not None:
            on = ca.reshape(plan[self._feet_place :], count, ocp.horizon)[:, k]
        h = None if ocp.lengths is not None else ocp.period
        stepped = self.step.system(self.system, h)
        motion = motion_fun(stepped, self.step.treatment(h), disturbed=True)
        known = {"q": x[:nq], "v": x[nq : nq + nv], "u": u[: self.system.nu], "t": time}
        known["d"] = plan[self._motion_size : self._motion_size + nv]
        known["step"] = ca.MX(length)
        known["mask"] = mask_of_contacts(self.system, self.contacts, on)
        found = motion(**{key: known[key] for key in motion.name_in()})
        return known["q"], known["v"], found["a"], found["lam"], on

    def _walk(self, plan: ca.MX) -> Walk:
        """Return the walk of a plan."""
        assert self.gait is not None
        if self.stands:
            return Walk(self.gait, plan[self._feet_place - 2], plan[self._feet_place - 1])
        return Walk(self.gait, self.gait.start, None)

    def _references(self) -> ca.Function:
        """Return (q, v, a, tau, lam, ends, [h]) → (ref), of states when an interval begins."""
        system, given = self.law.system.at(), self.ocp.lengths is not None
        h = ca.SX.sym("h") if given else self.ocp.period
        q, v, a = (
            ca.SX.sym(k, n) for k, n in (("q", system.nq), ("v", system.nv), ("a", system.nv))
        )
        tau, lam, ends = ca.SX.sym("tau"), ca.SX.sym("lam", self.system.nc), ca.SX.sym("ends")
        moved = system.integrate(q, tau * (v + h * a))
        now = Motion(moved, (1 - ends) * (v + tau * a), (1 - ends) * a)
        values = dict[str, ca.SX]()
        for task in self.law.tasks:
            own = _reference(task, system, now)
            values |= {f"{task.name}.{key}": value for key, value in own.items()}
        if self.contacts:
            values["force"] = contact_force_fun(self.system, self.contacts)(q, lam)
        slots = slot_slices(self.law.slots)
        missing = next((name for name in slots if name not in values), None)
        if missing is not None:
            raise ProblemError(
                f"the law that follows a plan has a reference {missing!r}, and a plan gives none; "
                "expected PostureTask, FrameTask in the world, and force_reference=True"
            )
        ref = ca.vertcat(*(values[name] for name in slots))
        inputs = [q, v, a, tau, lam, ends, *([ca.SX(h)] if given else [])]
        return ca.Function("reference", inputs, [ca.densify(ref)])


ROUNDING = 1e-6
"""Share of an interval by which an age may be short of the next one."""


def _reference(task: Task, system: System, now: Motion) -> dict[str, ca.SX]:
    """Return the slices of a task's reference along a motion; nothing for other tasks."""
    if isinstance(task, PostureTask):
        dofs = task.rates(system)
        return {"q": now.q[task.coordinates(system)], "v": now.v[dofs], "a": now.a[dofs]}
    if isinstance(task, FrameTask) and not task.base:
        frame = system.frame(task.frame, task.kind)
        twist = ca.SX(frame.velocity(now.q, now.v))
        change = ca.SX(frame.jacobian(now.q)) @ now.a + ca.SX(frame.bias(now.q, now.v))
        along, about = ([AXES.index(x) for x in axes] for axes in (task.position, task.orientation))
        values = dict[str, ca.SX]()
        if along:
            values["position"] = ca.SX(frame.pose(now.q)[0])[along]
            values["velocity"], values["acceleration"] = twist[along], change[along]
        if about:
            turned = [3 + i for i in about]
            values["quaternion"] = ca.SX(frame.quaternion(now.q))
            values["angular_velocity"] = twist[turned]
            values["angular_acceleration"] = change[turned]
        return values
    return {}
