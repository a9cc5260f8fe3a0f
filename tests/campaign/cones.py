"""Quadratic friction cones against Clarabel on the full problem in (a, p, lam, f).

    python -m campaign.cones --states 2500

Each state is one of `campaign.states` with references up to 1 m and 1 rad away, contacts switched.
The matrices are MuJoCo's. Compared are the objective and a, and p, which the weight of torques
makes unique.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from support.corpora import robot

from campaign.builders import FEET, SOLES, feet
from campaign.case import Case, Inputs
from campaign.full_form import Full, assemble
from campaign.mechanics import Array
from campaign.polish import polished
from campaign.robots import G1_SOLE, GO2_LEGS, at_reach, with_sites
from campaign.run import SEED
from campaign.second_solver import solve_full
from campaign.states import draw_inputs
from mbcasadi import models

ACCURACY = 1e-12  # of Clarabel
SAME = 1e-6  # objective and a, relative
BETTER = 1e-11  # objective of an admissible answer that is below the other one, relative
FEASIBLE = 1e-8  # violations, in scaled forces
EXACT = {"objective": SAME, "a": SAME, "p": SAME, "infeasible by": FEASIBLE}
INTERIOR = {"objective": SAME, "a": 1e-4, "p": np.inf, "infeasible by": FEASIBLE}
"""Where the active set of the interior point is not certain, it has the root of its gap; the part
of p that only the weight of torques, 1e-7, determines, is then unknown."""


def go2() -> Case:
    """Unitree's Go2 on the ends of its calves."""
    sites = [(leg, f"{leg}_calf", (0, 0, -0.213)) for leg in GO2_LEGS]
    source = with_sites(robot("men__unitree_go2__go2"), sites)
    contacts = feet(GO2_LEGS, cone="quadratic", friction=0.5, max_force=150.0)
    return at_reach("Go2", source, contacts=contacts, q0="home", poses=[("body", "base")])


def g1() -> Case:
    """Unitree's G1 on four points of each sole: redundant contacts with internal forces."""
    sites = [
        (f"{side}_{k}", f"{side}_ankle_roll_link", place)
        for side in ("left", "right")
        for k, place in enumerate(G1_SOLE)
    ]
    source = with_sites(robot("men__unitree_g1__g1"), sites)
    contacts = feet([name for name, *_ in sites], cone="quadratic")
    return at_reach("G1", source, contacts=contacts, q0="stand", poses=[("body", "pelvis")])


def quadruped() -> Case:
    """Our quadruped."""
    return at_reach(
        "quadruped", str(models.path("quadruped")), q0="stand", poses=[("body", "trunk")],
        contacts=feet(FEET, cone="quadratic", friction=0.4, min_force=2.0),
    )  # fmt: skip


def humanoid() -> Case:
    """Our humanoid on four points of each sole."""
    return at_reach(
        "humanoid", str(models.path("humanoid")), q0="stand", poses=[("body", "pelvis")],
        contacts=feet(SOLES, cone="quadratic"), spread=0.05,
    )  # fmt: skip


CASES: dict[str, Callable[[], Case]] = {
    "quadruped": quadruped, "humanoid": humanoid, "go2": go2, "g1": g1
}  # fmt: skip


@cache
def cone_case(name: str) -> Case:
    """Return a case by name."""
    return CASES[name]()


@dataclass
class Comparison:
    """One state: what was found ("" for the same answer), and relative differences."""

    status: int
    finding: str = ""
    differences: dict[str, float] = field(default_factory=dict)
    on_cone: int = 0


def compare(case: Case, inputs: Inputs) -> Comparison:
    """Return our answer beside Clarabel's."""
    answer = case.controller.solve(inputs.q, inputs.v, inputs.ref, mask=inputs.mask, z=inputs.z)
    full = assemble(case, inputs)
    z, verdict = solve_full(full, ACCURACY)
    if answer.status == 2:
        return Comparison(2, "" if verdict == "infeasible" else f"infeasible, Clarabel: {verdict}")
    if answer.status != 0 or z is None:
        return Comparison(answer.status, f"status {answer.status}, Clarabel: {verdict}")
    exact = polished(full, z)
    if exact is not None and not infeasible_by(full, exact) < FEASIBLE:
        exact = None  # another active set
    z = z if exact is None else exact
    on = inputs.mask[: len(case.contacts)] > 0.5
    ours, dynamics = full.join(answer.a, answer.p, answer.contact_forces[on].ravel())
    a, p, _ = full.split(z)
    costs = [0.5 * float(np.sum((full.R @ each - full.r) ** 2)) for each in (ours, z)]
    differences = {
        "objective": abs(costs[0] - costs[1]) / costs[1],
        "a": float(np.linalg.norm(answer.a - a) / np.linalg.norm(a)),
        "p": float(np.linalg.norm(answer.p - p) / np.linalg.norm(p)),
        "infeasible by": max(infeasible_by(full, ours), dynamics),
    }
    if costs[0] < costs[1] * (1 - BETTER) and differences["infeasible by"] < FEASIBLE:
        return Comparison(0, "", differences, _on_cone(case, answer, on))  # nearer to the optimum
    allowed = EXACT if exact is not None else INTERIOR
    return Comparison(0, _verdict(differences, allowed), differences, _on_cone(case, answer, on))


def infeasible_by(full: Full, z: Array) -> float:
    """Return the largest violation of a limit, a row or a cone, in scaled forces."""
    size = np.linalg.norm(z)
    violations = [float(np.max(full.C @ z - full.d, initial=0.0))]
    for first, scales in full.cones:
        s = scales / scales.max() * z[first : first + 3]
        violations.append(float(np.hypot(s[1], s[2]) - s[0]))
    return max(violations) / size


def _on_cone(case: Case, answer, on: Array) -> int:
    """Return how many contacts are at the limit of friction."""
    f, mu = answer.contact_forces, np.array([c.friction for c in case.contacts])
    return int(np.sum(on & (np.hypot(f[:, 1], f[:, 2]) > (1 - SAME) * mu * f[:, 0])))


def _verdict(differences: dict[str, float], allowed: dict[str, float]) -> str:
    return ", ".join(f"{k} {v:.1e}" for k, v in differences.items() if v > allowed[k])


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="campaign.cones", description=__doc__)
    parser.add_argument("--states", type=int, default=2500)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    given = parser.parse_args()
    wrong = 0
    for name in given.only:
        case, statuses, found = cone_case(name), Counter[int](), []
        worst: dict[str, list[float]] = {}
        for number in range(given.states):
            inputs = draw_inputs(case, number, SEED)
            if inputs is None:
                continue
            each = compare(case, inputs)
            statuses[each.status] += 1
            found += [(number, each.finding)] if each.finding else []
            for key, value in each.differences.items() | {("on cone", each.on_cone)}:
                worst.setdefault(key, []).append(value)
        shown = {k: f"{np.median(v):.1e} / {np.max(v):.1e}" for k, v in worst.items()}
        print(name, dict(statuses), shown, f"{len(found)} findings", found[:20], flush=True)
        wrong += len(found)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
