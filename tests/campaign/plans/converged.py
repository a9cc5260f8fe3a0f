"""Real-time iterations repeated at one state, beside IPOPT on the same nonlinear problem.

The iterations have a line search. IPOPT begins at the converged plan: how far its cost differs is
printed, relative to the cost. It then begins where they began, and may end in another minimum.
States from which the problem about the first guess has no solution are counted apart.

cd tests && python -m campaign.plans.converged [--states 20] [--only walker …]
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import tempfile
from pathlib import Path
from typing import NamedTuple

import casadi as ca
import numpy as np
from robots import models

from campaign.plans.inputs import by_gait, with_masks
from campaign.plans.judge import Judge
from campaign.plans.problems import OF_FILES, PROBLEMS, Posed
from mbcasadi import mpc
from mbcasadi.codegen import export_c
from mbcasadi.description.status import Status
from mbcasadi.mpc.ocp.shooting import Shooting

SEED = 7
TICKS = 300  # at one state, at most
SAME = 1e-9  # change of a plan that has converged, relative
STAYS = 1e-5  # the same after all ticks: the accuracy of a QP may leave it
LOWER = 1e-6  # share of the cost by which that of IPOPT may differ
SPREAD = {"q": 0.01, "v": 0.1}  # m and rad, m/s and rad/s
OPTIONS = {"ipopt.max_iter": 300, "ipopt.tol": 1e-9}


class Row(NamedTuple):
    """One state: ticks until a plan converged (none if it did not), costs.

    `refused` is whether no plan exists about the first guess: status 2, then and later.
    """

    ticks: int
    refused: bool
    own: float
    from_own: float
    from_start: float


def rows(posed: Posed, states: int, seed: int = SEED) -> list[Row]:
    """Return what becomes of random states near that at which the controller begins."""
    first = posed.law.memory.split(ca.DM(posed.law.controller.z0))
    X, U = first.X.full().T, first.U.full().T
    ocp, rng = posed.law.ocp, np.random.default_rng(seed)
    start = mpc.initial_guess(ocp, X, U)
    law = mpc.real_time_iteration(ocp, start, solver="stagewise", shift=False, line_search=5)
    ipopt = mpc.ocp_solver(ocp, "ipopt", hessian="gauss-newton", options=OPTIONS)
    found, system = list[Row](), ocp.system
    with tempfile.TemporaryDirectory(prefix="mbcasadi-plans-") as folder:
        loaded = export_c(law, Path(folder) / "c").load(flags=("-O2",))
        for _ in range(states):
            q = system.integrate(X[0, : system.nq], SPREAD["q"] * rng.standard_normal(system.nv))
            v = SPREAD["v"] * rng.standard_normal(system.nv)
            P = posed.reference()
            if posed.masks is not None:
                P = with_masks(posed, P, by_gait(posed, len(P), int(rng.integers(40))))
            found.append(_row((law, loaded), ipopt, (np.array(q).ravel(), v), P, start))
    return found


def _row(
    law: tuple[mpc.RealTimeIteration, object],
    ipopt: object,
    state: tuple[np.ndarray, np.ndarray],
    P: np.ndarray,
    start: mpc.OcpSolution,
) -> Row:
    (iteration, loaded), program = law, ipopt.program
    ocp, memory = iteration.ocp, iteration.memory
    z, plan, ticks, refused = iteration.controller.z0, np.zeros(1), 0, True
    begin = sum(memory.sizes[:2])
    pending = slice(begin, begin + memory.sizes[2])
    for tick in range(TICKS):
        _, z, status, *_ = (part.full().ravel() for part in loaded(*state, P.ravel(), z))
        z[pending] = iteration.controller.z0[pending]  # the control before is the same
        contents, refused = memory.split(ca.DM(z)), refused and status[0] == Status.INFEASIBLE
        before, plan = plan, np.concatenate([contents.X.full().ravel(), contents.U.full().ravel()])
        change = np.linalg.norm(plan - before) / np.linalg.norm(plan) if tick else np.inf
        if status[0] <= 1 and change < (SAME if tick < TICKS - 1 else STAYS):
            ticks = tick
            break
    x0 = Judge(iteration).guess(*state, P.ravel(), iteration.controller.z0)[3].full().ravel()
    own = mpc.initial_guess(ocp, contents.X.full().T, contents.U.full().T)
    cost = _cost(program, own, x0, P)
    warm, cold = (ipopt.solve(x0, P, guess) for guess in (own, start))
    return Row(ticks, refused, cost, *(_cost(program, each, x0, P) for each in (warm, cold)))


def _cost(program: Shooting, plan: mpc.OcpSolution, x0: np.ndarray, P: np.ndarray) -> float:
    """Return the cost of a plan with the slacks that it needs."""
    w = program.pack(plan.x, plan.u, P)
    return float(program.first_order()(w, np.concatenate([x0, P.ravel()]))[0])


def main() -> int:
    """Return the exit status: 0 only if IPOPT has the same cost from each converged plan."""
    ours = [name for name in PROBLEMS if name not in OF_FILES]
    parser = argparse.ArgumentParser(prog="campaign.plans.converged", description=__doc__)
    parser.add_argument("--states", type=int, default=20)
    parser.add_argument("--only", nargs="*", choices=[*PROBLEMS], default=ours)
    models.add_argument(parser)
    given, worst = parser.parse_args(), 0.0
    print("| problem | converged | no plan | ticks, median | IPOPT from there | from the start |")
    print("|---|---|---|---|---|---|")
    for name in given.only:
        found = rows(PROBLEMS[name](), given.states)
        settled = [row for row in found if row.ticks]
        ticks = np.median([row.ticks for row in settled]) if settled else np.nan
        apart = [abs(row.own - row.from_own) / abs(row.own) for row in settled]
        refused = sum(row.refused for row in found)
        other = [abs(row.own - row.from_start) / abs(row.own) < LOWER for row in settled]
        worst = max([worst, *apart])
        print(
            f"| {name} | {len(settled)} of {len(found) - refused} | {refused} | {ticks:.0f} | "
            f"{max(apart, default=np.nan):.1e} | the same minimum for {sum(other)} |",
            flush=True,
        )
    return int(worst > LOWER)


if __name__ == "__main__":
    raise SystemExit(main())
