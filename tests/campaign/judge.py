"""The verdict on one answer of a controller, in the original unknowns a, p and contact forces."""

from dataclasses import dataclass, field

import numpy as np

from campaign.case import Case, Inputs
from campaign.certificate import certify, clipped, reduce
from campaign.full_form import Full, assemble
from campaign.mechanics import Array
from campaign.second_solver import margin, solve_full
from mbcasadi.control.inverse_dynamics.solution import InverseDynamicsSolution
from mbcasadi.description.status import Flag

STATE_ROUNDING = 4.0  # times the tolerance: two ways to close a state, two metrics of residuals
WELL_INSIDE = 1e-4  # scaled margin from which a problem counts as feasible, or as infeasible

CONTROL_ROUNDING = 1e-9  # of p = gain u + bias, relative
SECOND_ORDER = 10.0  # times the squared distance: two ways to close a state differ by this

WRONG = ("outside limits", "another control", "equations", "constraint", "cone", "not optimal")
NEEDLESS = ("false infeasible", "needless failure", "needless suboptimal", "refused")
UNDECIDED = ("rank undecided", "indefinite", "inconsistent", "solvers disagree", "borderline")


@dataclass
class Verdict:
    """What was found about one answer; `finding` is "" for a right one."""

    status: int
    finding: str = ""
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def wrong(self) -> bool:
        return self.finding in WRONG


def judge(case: Case, inputs: Inputs, solution: InverseDynamicsSolution) -> Verdict:
    """Return the verdict on the controller's output at a tick."""
    status, tolerance = solution.status, case.controller.tolerance
    low, high = case.limits.T
    if np.any(solution.u < low) or np.any(solution.u > high) or not np.isfinite(solution.u).all():
        return Verdict(status, "outside limits")
    if status == 3:
        return Verdict(status, "refused" if inputs.is_closed else "rank undecided")
    full = assemble(case, inputs)
    if not full.definite:
        finding = "" if status == 4 else "indefinite"
        return Verdict(status, finding)
    if status <= 1:
        tolerance = STATE_ROUNDING * tolerance + SECOND_ORDER * inputs.moved(case) ** 2
        verdict = _verdict_on_answer(case, inputs, full, solution, tolerance)
        if verdict.finding or status == 0:
            return verdict
    return _verdict_on_failure(inputs, full, status)


def _verdict_on_answer(
    case: Case, inputs: Inputs, full: Full, solution: InverseDynamicsSolution, tolerance: float
) -> Verdict:
    a, p = solution.a, solution.p
    on = inputs.mask[: len(case.contacts)] > 0.5
    z, dynamics = full.join(a, p, solution.contact_forces[on].ravel())
    of_control, size = case.force_of(inputs, solution.u)
    apart = np.abs(of_control - p).max(initial=0.0) / (size.max(initial=0.0) + 1e-150)
    figures = {"dynamics": dynamics, "control": float(apart)}
    if not figures["control"] <= CONTROL_ROUNDING + SECOND_ORDER * inputs.moved(case) ** 2:
        return Verdict(solution.status, "another control", figures)
    if np.any(solution.contact_forces[~on] != 0) or not dynamics <= tolerance:
        return Verdict(solution.status, "equations", figures)
    b = z[: full.sizes[0]] * full.alpha
    size = np.linalg.norm(b) + full.alpha + 1e-150
    violation = np.abs(full.rows @ b + full.bias) / size
    allowed = tolerance
    if not (full.determined and full.consistent and inputs.is_closed):
        allowed = case.controller.rank_tol + tolerance
    figures["constraint"] = float(violation.max(initial=0.0))
    if not figures["constraint"] <= allowed + 10 * inputs.noise * (not full.consistent):
        return Verdict(solution.status, "constraint", figures)
    outside = (full.C @ z - full.d) / full.unit
    figures["primal"] = float(outside.max(initial=0.0) / (np.linalg.norm(z) + 1.0))
    if not figures["primal"] <= tolerance:
        return Verdict(solution.status, "cone", figures)
    if solution.status != 0:
        return Verdict(solution.status, "", figures)
    if not (full.determined and inputs.is_closed):
        return Verdict(0, "rank undecided", figures)
    if not full.consistent:
        return Verdict(0, "inconsistent", figures)
    if Flag.CLIPPED in solution.flags:
        full = clipped(full, case.controller.stages.scales.required)
        figures["clipped"] = 1.0
    return _verdict_on_optimum(full, z, figures, tolerance)


def _verdict_on_optimum(full: Full, z: Array, figures: dict[str, float], tol: float) -> Verdict:
    reduced = reduce(full)
    proof = certify(reduced, z, full.floor)
    figures |= {"stationarity": proof.stationarity, "complementarity": proof.complementarity}
    certified = proof.stationarity <= tol and proof.complementarity <= tol
    best, _ = solve_full(full)
    if best is None:
        return Verdict(0, "" if certified else "not optimal", figures)
    excess = (cost(full, z) - cost(full, best)) / proof.size**2
    figures |= {"excess": float(excess)}
    nv, nu = full.sizes[:2]
    scale = np.abs(best[:nv]).max() + proof.size
    figures["a apart"] = float(np.abs(z[:nv] - best[:nv]).max() / scale)
    force = np.abs(best[nv : nv + nu]).max() + 1.0
    figures["p apart"] = float(np.abs(z[nv : nv + nu] - best[nv : nv + nu]).max() / force)
    if certified and excess <= tol:
        return Verdict(0, "", figures)
    if not certified and excess > tol:
        return Verdict(0, "not optimal", figures)
    return Verdict(0, "solvers disagree" if not certified else "", figures)


def _verdict_on_failure(inputs: Inputs, full: Full, status: int) -> Verdict:
    if not (full.determined and inputs.is_closed):
        return Verdict(status, "rank undecided")
    if not full.consistent:
        return Verdict(status, "inconsistent")
    _, word = solve_full(full)
    inside = margin(full)
    figures = {"margin": inside}
    if status == 2 and word == "infeasible":
        return Verdict(status, "", figures)
    if inside > WELL_INSIDE:
        names = {1: "needless suboptimal", 2: "false infeasible", 4: "needless failure"}
        return Verdict(status, names[status], figures)
    if inside < -WELL_INSIDE:
        return Verdict(status, "", figures)
    return Verdict(status, "borderline", figures)


def cost(full: Full, z: Array) -> float:
    """Return the cost of z, in its scale."""
    return 0.5 * float(np.sum((full.R @ z - full.r) ** 2))
