"""The stage of a control step behind the solver: residuals, status, output.

It recovers the actuator forces, clips them to their ranges, computes the residuals and chooses the
output.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.carried import ROWS, carried_condensed, carried_rows
from mbcasadi.control.inverse_dynamics.condensed_dynamics import LEAST_PIVOT, Condensed, Dynamics
from mbcasadi.control.inverse_dynamics.condensed_problem import CondensedProblem
from mbcasadi.control.inverse_dynamics.contacts.acting_actuators import owners_of_bounds
from mbcasadi.control.inverse_dynamics.fallback import offered_output
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.posed import Posed, no_force
from mbcasadi.control.inverse_dynamics.priorities.last_level import LastLevel
from mbcasadi.control.inverse_dynamics.residuals import (
    RESIDUALS,
    ROUNDED,
    Allowance,
    Candidate,
    CostAt,
    residuals,
)
from mbcasadi.control.inverse_dynamics.softened import RELAXED_SHARE, excess, words
from mbcasadi.control.inverse_dynamics.viability import LOST, Viability, lost_rows
from mbcasadi.control.limits.soft_limits import soft_rows
from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.control.tick.columns import Layout, unpack
from mbcasadi.control.tick.part import Outcome
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.description.tolerance import tolerance as marked_tolerance
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.input_guard import clamp, is_saturated
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS, judge, length
from mbcasadi.qp.quadratic_cones import in_dual_cones, warm_starts
from mbcasadi.qp.rows import Rows
from mbcasadi.qp.whitening import Whitened

ACTUATORS = ("gain", "bias", "act", "lower", "upper")
OF_ACTIVATIONS = ("hold", "pid_state")
WHITENED = ("y_0", "L_inv", "distance")
COST = ("J", "offset", "weight", "p_ref", "of_lam", "of_w", "f_ref", "size")
PART = "part."
OUTCOME = ("actuators.", "hold.", PART)
JUDGED = ("valid", "measured", "clipped", "lost", "noticed", "a")


def carried_values(setup: Setup, qp: CondensedProblem, posed: Posed) -> dict[str, ca.SX]:
    """Return everything that the stage needs, by name."""
    problem, tasks = qp.problem, qp.problem.tasks
    error = linalg.product(tasks.J, qp.condensed.t) + tasks.offset
    speed = length(problem.v / ca.DM(setup.system.scales.coordinates))
    cost = {
        "J": tasks.J,
        "offset": tasks.offset,
        "weight": tasks.weight,
        "p_ref": problem.p_ref,
        "of_lam": qp.forces.of_lam,
        "of_w": qp.forces.of_w,
        "f_ref": qp.forces.ref,
        "size": length(ca.sqrt(tasks.weight) * error),
    }
    dynamics = problem.dynamics
    if setup.levels and 2 * dynamics.M.nnz() > dynamics.M.numel():  # every level multiplies by it
        dynamics = dynamics._replace(M=ca.densify(dynamics.M))
    values = {
        **{f"dynamics.{key}": value for key, value in dynamics._asdict().items()},
        **{f"condensed.{key}": value for key, value in qp.condensed._asdict().items()},
        **{f"whitened.{key}": getattr(qp.whitened, key) for key in WHITENED},
        **{f"rows.{key}": getattr(problem.rows, key) for key in ROWS},
        **{f"actuators.{key}": getattr(problem.actuators, key) for key in carried_of(setup)},
        **{f"cost.{key}": value for key, value in cost.items()},
        "rate": setup.contact_damping + speed,
        "valid": posed.valid,
        "measured": posed.measured,
        "clipped": qp.clipped,
        **({"lost": _lost(qp, posed)} if Viability.of(setup).rows else {}),
        "noticed": posed.noticed,
        **posed.hold,
        **{f"{PART}{part}.{key}": x for part, own in _carried(setup, qp) for key, x in own.items()},
        **({"drag": problem.contacts.drag} if problem.contacts.sliding else {}),
    }
    return {key: ca.SX(x) if isinstance(x, ca.DM) else x for key, x in values.items()}


def _carried(setup: Setup, qp: CondensedProblem) -> list[tuple[str, dict[str, ca.SX]]]:
    """Return what each part carries over, by its name."""
    carried, tasks = qp.problem.carried, qp.problem.tasks
    return [
        (
            each.name,
            {
                **carried.get(each.name, {}),
                **(each.judge(tasks, qp.scales.floors) if each.judge else {}),
            },
        )
        for each in setup.bound
    ]


def known_to(part: str, known: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
    """Return what a part knows, by its own names."""
    start = f"{PART}{part}."
    return {key.removeprefix(start): x for key, x in known.items() if key.startswith(start)}


def _lost(qp: CondensedProblem, posed: Posed) -> ca.SX:
    """Return whether a limit of a position or a speed cannot be kept."""
    return ca.logic_or(ca.mmax(lost_rows(*qp.demands)), posed.lost)


def carried_of(setup: Setup) -> tuple[str, ...]:
    """Return the entries of the actuators that this stage needs."""
    return ACTUATORS + (OF_ACTIVATIONS if setup.system.na else ())


@dataclass(frozen=True)
class FinishStage:
    """What the stage is made from.

    Attributes:
        setup: the options.
        qp: the problem that was solved.
        layout: of the numbers that are carried over.
        safe: the output of a tick without a solution.
        kind: of expressions: scalars, or matrices.
        levels: the end of a tick with levels, else None.
    """

    setup: Setup
    qp: CondensedProblem
    layout: Layout
    safe: SafeOutput
    kind: type[ca.SX]
    levels: LastLevel | None = None

    def function(self, inputs: dict[str, ca.SX]) -> ca.Function:
        """Return (inputs, carry, x, lam_a, active, flag) → (outputs of the controller).

        Args:
            inputs: symbols of what the safe output may read.
        """
        given = {name: self.kind.sym(name, x.numel()) for name, x in inputs.items()}
        m, nw = len(self.qp.problem.rows.about), self.qp.problem.contacts.of_w.shape[1]
        sizes = {"x": self.setup.system.nu + nw, "lam_a": m, "active": m, "flag": 1}
        solver = {name: self.kind.sym(name, size) for name, size in sizes.items()}
        carry = self.kind.sym("carry", self.layout.size)
        known = unpack(self.layout, carry)
        outputs, passed = list(OUTPUTS), {}
        if self.levels is None:
            residual, p, a, exceeded = self._residuals(known, solver["x"], solver["lam_a"])
            end = {"residual": residual, "p": p, "a": a, **exceeded}
            end |= {"active": solver["active"], "flag": solver["flag"]}
        else:
            passed = {"passed": self.kind.sym("passed", self.levels.layout.size)}
            end = self.levels.judged(known, passed["passed"], solver)._asdict()
            condensed = carried_condensed(known)
            end["a"] = condensed.acceleration(end["p"])
            rows = carried_rows(self.qp.problem.rows, known)
            end |= self._exceeded(rows, condensed, end["p"], end.pop("w"))
            outputs.append("levels")
        outputs += ["relaxed", "slack"] if self.setup.soft else []
        outputs += [signal.name for each in self.setup.bound for signal in each.outputs]
        miss = linalg.product(known["cost.J"], end["a"]) + known["cost.offset"]
        for each in self.setup.bound:
            if each.moved:
                own = each.moved(known_to(each.name, known), end["a"], miss)
                known |= {f"{PART}{each.name}.{key}": x for key, x in own.items()}
        judged = {
            key: value
            for key, value in known.items()
            if key in JUDGED or key.startswith(OUTCOME) or key.endswith("definite")
        }
        judged |= end
        judged |= {f"input.{name}": value for name, value in given.items()}
        return ca.Function(
            "finish",
            [*given.values(), carry, *passed.values(), *solver.values()],
            in_scalars("outcome", self._outcome, judged),
            [*given, "carry", *passed, *solver],
            outputs,
            {"cse": True},
        )

    def _residuals(
        self, known: dict[str, ca.SX], x: ca.SX, lam_a: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX, dict[str, ca.SX]]:
        """Return residuals, forces, acceleration of the solver's result, excesses of soft rows."""
        qp, setup = self.qp, self.setup
        whitened = Whitened(
            y_0=known["whitened.y_0"],
            L_inv=known["whitened.L_inv"],
            free=qp.whitened.free,
            distance=known["whitened.distance"],
        )
        y, nu = whitened.unknown(x), setup.system.nu
        lower, upper = known["actuators.lower"], known["actuators.upper"]
        p = ca.fmin(ca.fmax(y[:nu, 0], lower), upper)
        cost = CostAt(
            weights=qp.weights,
            force_weights=qp.forces.weights,
            **{key: known[f"cost.{key}"] for key in COST},
        )
        rows, condensed = carried_rows(qp.problem.rows, known), carried_condensed(known)
        residual = residuals(
            Candidate(p, y[nu:, 0], in_dual_cones(lam_a, rows.cones), x),
            Dynamics(*(known[f"dynamics.{key}"] for key in Dynamics._fields)),
            condensed,
            whitened,
            rows,
            cost,
            qp.scales,
            Allowance(setup.rank_tol, known["rate"], setup.tolerance),
            known.get("drag"),
        )
        exceeded = self._exceeded(rows, condensed, p, y[nu:, 0])
        viability = Viability.of(setup)
        if viability.sharing:
            exceeded["shortfall"] = viability.shortfall(qp.scales, rows.about, y[nu:, 0])
        return residual, p, condensed.acceleration(p), exceeded

    def _exceeded(self, rows: Rows, condensed: Condensed, p: ca.SX, w: ca.SX) -> dict[str, ca.SX]:
        """Return by how much soft rows exceed their bounds, and the sizes of what is in them."""
        if not self.setup.soft:
            return {}
        soft = soft_rows(rows.about, self.setup.soft)
        places, units = [each.row for each in soft], self.qp.scales
        unknowns = (p, condensed.multipliers(p), w, condensed.acceleration(p))
        usual = length(ca.DM(units.actuators) * p) * ca.DM(ROUNDED * units.inequalities[places])
        size = rows.size(*unknowns)[places, 0] + usual
        return {"excess": excess(rows, rows.value(*unknowns), w, soft), "within": size}

    def _outcome(self, known: dict[str, ca.SX]) -> list[ca.SX]:
        """Return the controller's outputs."""
        residual, valid = known["residual"], known["valid"]
        tolerance = marked_tolerance(self.setup.tolerance)
        small = {name: residual[i] <= tolerance for i, name in enumerate(RESIDUALS)}
        status = judge(
            residual[len(RESIDUALS) - len(QP_RESIDUALS) :, 0],
            flag=known["flag"],
            valid=valid,
            tolerance=tolerance,
            consistent=ca.logic_and(
                known["condensed.definite"] >= LEAST_PIVOT,
                ca.logic_and(small["dynamics"], small["constraint"]),
            ),
        )
        optimal = status <= int(Status.SUBOPTIMAL)
        carried: dict[str, Any] = {key: known[f"actuators.{key}"] for key in carried_of(self.setup)}
        carried.setdefault("hold", type(known["p"]).zeros(self.setup.system.nu))
        actuators = replace(self.qp.problem.actuators, **carried)
        inputs = {key[6:]: value for key, value in known.items() if key.startswith("input.")}
        offered, measured = offered_output(self.setup, known, inputs, no_force(actuators))
        m = known["active"].numel()
        memory = inputs["z"][m : m + self.safe.size, 0] if self.safe.size else ca.SX(0, 1)
        u_solved = actuators.controls(known["p"])
        u_free, u, remembered = self.safe.step(memory, offered, measured, optimal, u_solved)
        tick = Outcome(
            known={},
            valid=valid,
            measured=known["measured"],
            solved=optimal,
            p=known["p"],
            a=known["a"],
            u=u,
            active=known["active"],
            about=self.qp.problem.rows.about,
            acting=owners_of_bounds(self.setup, self.qp.problem),
            actuators=actuators,
            coordinates=self.qp.scales.coordinates,
            strength=self.qp.scales.strength,
        )
        parts = [(each, known_to(each.name, known)) for each in self.setup.bound]
        for part, own in parts:
            if part.safe:
                near = clamp(part.safe(replace(tick, known=own)), self.safe.u_min, self.safe.u_max)
                tick = replace(tick, u=ca.if_else(optimal, tick.u, near))
        u, ticks = tick.u, [(part, replace(tick, known=own)) for part, own in parts]
        clipped = ca.logic_and(valid, known["clipped"])
        flags = Flag.SATURATED * is_saturated(u_free, u) + Flag.CLIPPED * clipped
        if "lost" in known:
            short = ca.logic_and(optimal, known.get("shortfall", 0) > LOST)
            flags += Flag.UNVIABLE * ca.logic_and(valid, ca.logic_or(known["lost"], short))
        flags += ca.if_else(valid, known["noticed"], 0)
        flags += sum(part.flags(own) for part, own in ticks if part.flags)
        learned = [part.remember(own) if part.remember else ca.SX(0, 1) for part, own in ticks]
        of_qp = self.qp.problem.rows
        active = warm_starts(known["active"], len(of_qp.about), of_qp.cones)
        z_next = ca.vertcat(optimal * active, remembered, *learned)
        outputs = [u, z_next, status, flags, ca.if_else(valid, residual, np.inf)]
        if self.levels is not None:
            outputs.append(ca.if_else(valid, known["errors"], np.inf))
        if self.setup.soft:
            slack = optimal * known["excess"]
            relaxed = ca.fabs(slack) > RELAXED_SHARE * known["within"]
            outputs[3] = flags + Flag.RELAXED * ca.mmax(relaxed)
            outputs += [words(relaxed), slack]
        for (part, _), memory in zip(ticks, learned, strict=True):
            ends = np.cumsum([0, *(len(signal.components) for signal in part.outputs)])
            outputs += [memory[a:b, 0] for a, b in pairwise(ends.tolist())]
        return outputs
