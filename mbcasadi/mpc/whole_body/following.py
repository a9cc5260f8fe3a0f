"""From a plan to the references of inverse dynamics at a moment within it.

    (plan, age, t) → (ref, [mask]),   plan = (x_0 … x_{N-1}, u_0 … u_{N-1}, [lengths], d, [walk])

With measured touch-down a plan ends with the contacts that stand in each of its intervals.

The law tracks accelerations, which are constant over an interval, as contact forces are. It moves a
state (q, v) to `q ⊕ (h v + ½ h² a)`, `v + h a`: in positions half an interval ahead of their rates,

    p = q ⊕ ½ h v,    p⁺ = p ⊕ h v⁺,

which is a step of the plan. So the positions of a plan's samples are those ahead, p: rates of its
end are no error then, and a foot that lands at a sample does so at that sample. Between two samples
the law is asked for `q = p ⊕ ((τ - ½ h) v + ½ τ² a)`. Behind its last interval the plan's last
positions are held.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.parts.force_feedback import MEASURED
from mbcasadi.control.inverse_dynamics.parts.rigid_springs import spring_map
from mbcasadi.description import Contact
from mbcasadi.dynamics import forward_dynamics, inverse_dynamics
from mbcasadi.mpc.integrators.semi_implicit import SemiImplicitStep, motion_fun, moved_fun
from mbcasadi.mpc.legged.gait import Gait, Walk
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.mpc.whole_body.contact_mask import mask_of_contacts
from mbcasadi.mpc.whole_body.felt_contacts import FeltContacts
from mbcasadi.mpc.whole_body.law_references import law_references, way_within
from mbcasadi.mpc.whole_body.tracking import tracking_fun
from mbcasadi.system import System

ROUNDING = 1e-6
"""Share of an interval by which an age may be short of the next one."""


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
        ocp, has_lengths = self.ocp, self.ocp.lengths is not None
        return (ocp.nx + ocp.nu + has_lengths) * ocp.horizon

    @property
    def _step_length(self) -> float | None:
        """Length of each interval, s; None where plans have lengths of their own."""
        return None if self.ocp.lengths is not None else self.ocp.period

    def function(self, name: str) -> ca.Function:
        """Return (plan, age, t, [f_measured]) → (ref, [mask])."""
        plan, age, t = ca.MX.sym("plan", self.size), ca.MX.sym("age"), ca.MX.sym("t")
        k = self._number(plan, age, ROUNDING)
        begins, length = self._place(plan, k)
        end = self.ocp.times[-1] if self.ocp.lengths is None else ca.sum1(self._lengths(plan))
        ends = age > end
        tau = ca.if_else(ends, 0, ca.fmax(age - begins, 0))
        p, v, a, lam, on = self._interval(plan, k, t - age)
        v, a = self._with_held_springs(p, v, a, t, on)
        given = [] if self.ocp.lengths is None else [length]
        asked = law_references(self.law, self.system, self.contacts, self._step_length)
        outputs = {"ref": asked.call([p, v, a, tau, lam, ends, *given])[0]}
        inputs = {"plan": plan, "age": age, "t": t}
        if self.rule is not None:
            inputs[MEASURED] = ca.MX.sym(MEASURED, 3 * len(self.contacts))
            on = self._on_at(plan, on, t, inputs[MEASURED])
        if self.law.mask_names:
            others = ca.MX.ones(len(self.law.mask_names) - len(self.contacts))
            outputs["mask"] = ca.vertcat(on, others)
        return ca.Function(name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])

    def _with_held_springs(
        self, p: ca.MX, v: ca.MX, a: ca.MX, t: ca.MX, on: ca.MX
    ) -> tuple[ca.MX, ca.MX]:
        """Return the rates and accelerations nearest to a plan's that leave springs as they are.

        They are nearest in terms of the inertia, as `predicted` has it: what a plan's joints do to
        keep the base still while a spring deflects is left out with the deflection. The law would
        do it without the deflection, and move the base.
        """
        if self.law.rigid_springs is None:
            return v, a
        system, _ = self._held()
        force = inverse_dynamics(self.law.system.at())
        motion = forward_dynamics(system, derivatives=False)
        mask, still = mask_of_contacts(system, self.contacts, on), ca.MX.zeros(v.shape)
        accelerations = []
        for rate, change in ((still, v), (v, a)):
            inputs = {"q": p, "v": rate, "t": t, "mask": mask}
            inputs["f"] = force(q=p, v=rate, a=change)["f"]
            accelerations.append(motion(**{key: inputs[key] for key in motion.name_in()})["a"])
        return accelerations[0], accelerations[1]

    def _on_at(self, plan: ca.MX, on: ca.MX, t: ca.MX, forces: ca.MX) -> ca.MX:
        """Return the contacts that the law has at t, s: those of the plan, and what is felt."""
        walk = self._walk(plan)
        stands: ca.MX = self._felt()(on, t, walk.begin, 0 if walk.end is None else walk.end, forces)
        return stands

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

    def predicted(
        self,
        plan: ca.MX,
        measured: tuple[ca.MX, ca.MX, ca.MX],
        age: ca.MX,
        t: ca.MX,
        length: ca.MX,
    ) -> list[ca.MX]:
        """Return the state (p, v) with which the next plan begins, `delay` intervals after t, s.

        The law follows the plan's accelerations as far as the contacts let it, feet that touch too,
        and brings joints and base back to the plan, so that is how the measured state moves, by the
        dynamics of the plan's own step. Under the plan's controls it would move otherwise: those of
        servos belong to the plan's positions.
        Springs that the law holds as rigid come to rest at once: they swing several times in an
        interval, and from their present rate no plan can tell the next one.

        Args:
            plan: the one that acts, of some `age`, s.
            measured: q, v and the forces n, t1, t2 of each contact, which count with a rule.
            age: s.
            t: s.
            length: of the first interval of the next plan, s.
        """
        base, h, (q, v, forces) = self.law.system.at(), self.ocp.period, measured
        moved, back = moved_fun(base), tracking_fun(self.law.tasks, base, h)
        system, step = self._held()
        force = inverse_dynamics(step.system(base, self._step_length))
        stepped = step.system(system, self._step_length)
        motion = forward_dynamics(stepped, treatment=step.treatment(self._step_length))
        first = ca.fmax(ca.floor(age / h + 0.5), 0)
        p = moved(q, h / 2 * self._without_springs(v))
        for k in range(self.delay):
            number, start = ca.fmin(first + k, self.ocp.horizon - 1), t - age
            if self.ocp.lengths is None:
                start = t + (k - number) * h
            else:
                number = self._number(plan, age + (k + 0.5) * h, 0.0)
            p_k, v_k, a, _, on = self._interval(plan, number, start)
            begins, span = self._place(plan, number)
            tau = ca.fmax(ca.fmin(age + k * h - begins, span), 0)
            q_ref = moved(p_k, way_within(tau, span, v_k, a))
            a = a + back(q, v, q_ref, v_k + tau * a)
            inputs = {"q": p, "v": v, "t": t + (k + 0.5) * h, "step": ca.MX(h)}
            if self.rule is not None:
                on = self._on_at(plan, on, t + k * h, forces)
            inputs["mask"] = mask_of_contacts(system, self.contacts, on)
            known = inputs | {"a": a}
            inputs["f"] = force(**{key: known[key] for key in force.name_in()})["f"]
            v = v + h * motion(**{key: inputs[key] for key in motion.name_in()})["a"]
            p = moved(p, h * v)
            q = moved(p, -h / 2 * v)
        return [p if self.ocp.lengths is None else moved(q, length / 2 * v), v]

    def _without_springs(self, v: ca.MX) -> ca.MX:
        """Return rates without those of springs that the law holds."""
        springs = self.law.rigid_springs
        if springs is None:
            return v
        S = spring_map(self.law.system, springs)
        return v - ca.sparsify(ca.DM(np.linalg.pinv(S) @ S)) @ v

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
        """Return p, v, a, multipliers and the contacts that are on of an interval.

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
        stepped = self.step.system(self.system, self._step_length)
        motion = motion_fun(stepped, self.step.treatment(self._step_length), disturbed=True)
        inputs = {"q": x[:nq], "v": x[nq : nq + nv], "u": u[: self.system.nu], "t": time}
        inputs["d"] = plan[self._motion_size : self._motion_size + nv]
        inputs["step"] = ca.MX(length)
        inputs["mask"] = mask_of_contacts(self.system, self.contacts, on)
        results = motion(**{key: inputs[key] for key in motion.name_in()})
        return inputs["q"], inputs["v"], results["a"], results["lam"], on

    def _walk(self, plan: ca.MX) -> Walk:
        """Return the walk of a plan."""
        assert self.gait is not None
        if self.stands:
            return Walk(self.gait, plan[self._feet_place - 2], plan[self._feet_place - 1])
        return Walk(self.gait, self.gait.start, None)
