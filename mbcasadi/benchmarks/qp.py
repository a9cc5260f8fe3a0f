"""Solving the QP of inverse dynamics: condensed, by DAQP, against peers on the usual full form.

`ours` is the condensed least-distance problem in the actuator forces, solved by CasADi's DAQP
plugin through a `FunctionBuffer`. The peers get the same states as a QP in acceleration,
actuator forces and multipliers, with the dynamics as equality rows, through their own Python
interfaces; DAQP on that form is a peer too. Building the problems is not timed. `wrong` counts
states where a peer's actuator forces miss ours (verified by `residuals.py`) by more than `WRONG`.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.inverse_dynamics.inputs import guard_inputs, input_symbols
from mbcasadi.control.inverse_dynamics.problem import ForceWeights, assemble_problem
from mbcasadi.description import Contact
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.qp.solver import DENSE_SOLVERS
from mbcasadi.system import read_mjcf

Array = NDArray[np.float64]
Solver = Callable[["FullForm"], Array]

WRONG = 1e-2  # relative to the largest actuator force
LEAST_HESSIAN = 1e-8  # peers need a positive definite Hessian on acceleration and multipliers too
SPREAD, SPEED = 0.05, 0.3  # of the random states about the standing pose, rad or m, and per s
PEERS = ("daqp", "quadprog", "proxsuite", "osqp")


class FullForm:
    """`min ½ zᵀ H z + gᵀ z`, `E z = e`, `lower <= C z <= upper`, `z = (a, p, lam, w)`."""

    def __init__(self, matrices: dict[str, Array], weights: ForceWeights) -> None:
        M, B, G, J, weight = (matrices[k] for k in ("M", "B", "G", "J", "weight"))
        (nv, nu), m, nw = B.shape, len(G), matrices["C_w"].shape[1]
        WJ = weight * J
        diagonal = np.concatenate([weights.actuators, np.full(m, LEAST_HESSIAN)])
        self.H = np.zeros((nv + nu + m + nw,) * 2)
        self.H[:nv, :nv] = J.T @ WJ + LEAST_HESSIAN * np.eye(nv)
        self.H[nv:, nv:] = np.diag(np.concatenate([diagonal, np.full(nw, weights.internal)]))
        self.g = np.concatenate([WJ.T @ matrices["offset"].ravel(), np.zeros(nu + m + nw)])
        self.E = np.vstack(
            [
                np.hstack([M, -B, -G.T, np.zeros((nv, nw))]),
                np.hstack([G, np.zeros((m, nu + m + nw))]),
            ]
        )
        self.e = np.concatenate([matrices["f"].ravel(), -matrices["c"].ravel()])
        rows = np.zeros((len(matrices["C_p"]), nv))
        self.C = np.hstack([rows, matrices["C_p"], matrices["C_lam"], matrices["C_w"]])
        self.lower, self.upper = matrices["lower"].ravel(), matrices["upper"].ravel()
        self.forces = slice(nv, nv + nu)


def run(quick: bool = False) -> dict[str, Any]:
    """Time the solvers; returns `{"rows": [...]}`, medians in seconds over random states."""
    rows: list[dict[str, Any]] = []
    for name, controller in _cases():
        states = _states(controller, 10 if quick else 100)
        forms, ours, forces = _ours(controller, states)
        for peer in PEERS:
            solver = _peer(peer)
            row: dict[str, Any] = {
                "model": name,
                "quantity": "solve QP",
                "ours": ours,
                "peer": f"{peer}, called from Python",
            }
            if solver is None:
                rows.append(row | {"peer": f"{peer} (absent)", "peer_time": None, "ratio": None})
                continue
            taken, mismatches = _time_solver(solver, forms, forces)
            note = {"wrong": mismatches, "states": len(forms)}
            rows.append(row | {"peer_time": taken, "ratio": ours / taken} | note)
    return {"rows": rows}


def _cases() -> list[tuple[str, InverseDynamicsQP]]:
    quadruped = read_mjcf(models.path("quadruped"))
    humanoid = read_mjcf(models.path("humanoid"))
    soles = [f"{side}_foot_{i}" for side in ("left", "right") for i in range(1, 5)]
    trunk = FrameTask("trunk", kind="body", weight=100.0, name="base")
    pelvis = FrameTask("pelvis", kind="body", weight=10.0, name="base")
    posture = PostureTask(kp=50.0)
    feet = [Contact(name, sides=4) for name in ("FL", "FR", "RL", "RR")]
    return [
        ("quadruped", InverseDynamicsQP(quadruped, [trunk, posture], feet)),
        (
            "humanoid",
            InverseDynamicsQP(humanoid, [pelvis, posture], [Contact(s, sides=4) for s in soles]),
        ),
    ]


def _states(controller: InverseDynamicsQP, count: int) -> list[dict[str, Array]]:
    rng, system = np.random.default_rng(0), controller.system
    assert system.tree is not None
    stand = system.tree.keyframes["stand"]
    states: list[dict[str, Array]] = []
    while len(states) < count:
        dv = SPREAD * rng.standard_normal(system.nv)
        q = np.array(system.integrate(stand, dv)).ravel()
        v = SPEED * rng.standard_normal(system.nv)
        ref = controller.reference_at(stand)
        if controller.solve(q, v, ref).solved:
            mask = np.ones(len(controller.mask_names))
            states.append({"q": q, "v": v, "ref": ref, "mask": mask})
    return states


def _ours(
    controller: InverseDynamicsQP, states: list[dict[str, Array]]
) -> tuple[list[FullForm], float, list[Array]]:
    """Return the problems in full form, our median time, and our actuator forces."""
    stages, parts_fun = controller.stages.qp, _matrices_fun(controller)
    pattern = {"h": ca.Sparsity.diag(stages.n), "a": ca.Sparsity.dense(stages.m, stages.n)}
    conic = ca.conic("ours", "daqp", pattern, DENSE_SOLVERS["daqp"])
    buffer: Any
    buffer, trigger = conic.buffer()  # the stubs require the sizes too, the module does not
    store = {conic.name_in(i): np.zeros(conic.nnz_in(i)) for i in range(conic.n_in())}
    store["h"][:], store["lbx"][:], store["ubx"][:] = 1.0, -np.inf, np.inf
    results = [np.zeros(conic.nnz_out(i)) for i in range(conic.n_out())]
    for i, value in enumerate(store.values()):
        buffer.set_arg(i, value.data)
    for i, value in enumerate(results):
        buffer.set_res(i, value.data)
    times, forms, forces = [], [], []
    for state in states:
        built = stages.build(**state)
        for name, key in (("a", "A_qp"), ("lba", "lba"), ("uba", "uba")):
            store[name][:] = np.array(built[key]).ravel(order="F")
        times.append(_median_time(trigger))
        forces.append(controller.solve(state["q"], state["v"], state["ref"]).p)
        matrices = {key: np.array(value) for key, value in parts_fun(**state).items()}
        forms.append(FullForm(matrices, controller.force_weights))
    return forms, float(np.median(times)), forces


def _matrices_fun(controller: InverseDynamicsQP) -> ca.Function:
    """Return (q, v, ref, mask) → the matrices before anything is eliminated."""
    raw = input_symbols(controller, 0)
    del raw["z"]
    problem = assemble_problem(controller, guard_inputs(controller, raw)[0])
    rows = problem.rows
    matrices = problem.dynamics._asdict() | {
        "J": problem.tasks.J,
        "offset": problem.tasks.offset,
        "weight": ca.SX(problem.tasks.weight),
        **{key: getattr(rows, key) for key in ("C_p", "C_lam", "C_w", "lower", "upper")},
    }
    dense = [ca.densify(value) for value in matrices.values()]
    return ca.Function("parts", list(raw.values()), dense, list(raw), list(matrices), {"cse": True})


def _median_time(call: Callable[[], Any], repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _time_solver(solver: Solver, forms: list[FullForm], forces: list[Array]) -> tuple[float, int]:
    """Return the median time and the number of states with another solution than ours."""
    times, mismatches = [], 0
    for form, expected in zip(forms, forces, strict=True):
        start = time.perf_counter()
        z = solver(form)
        times.append(time.perf_counter() - start)
        miss = np.abs(z[form.forces] - expected).max()
        mismatches += not miss <= WRONG * np.abs(expected).max()
    return float(np.median(times)), mismatches


def _peer(name: str) -> Solver | None:
    """Return a solver of the full form, or None where its package is not installed."""
    if name == "daqp":
        return _daqp_full
    try:
        package = importlib.import_module(name)
    except ImportError:
        return None
    return {"quadprog": _quadprog, "proxsuite": _proxsuite, "osqp": _osqp}[name](package)


def _daqp_full(form: FullForm) -> Array:
    A = np.vstack([form.E, form.C])
    key = A.shape
    if key not in _daqp_cache:
        pattern = {"h": ca.Sparsity.dense(*form.H.shape), "a": ca.Sparsity.dense(*A.shape)}
        _daqp_cache[key] = ca.conic("full", "daqp", pattern, DENSE_SOLVERS["daqp"])
    lba, uba = np.concatenate([form.e, form.lower]), np.concatenate([form.e, form.upper])
    solution = _daqp_cache[key](h=form.H, g=form.g, a=A, lba=lba, uba=uba)
    return np.array(solution["x"]).ravel()


_daqp_cache: dict[tuple[int, ...], ca.Function] = {}


def _quadprog(package: Any) -> Solver:
    def solve(form: FullForm) -> Array:
        low, high = form.lower > -UNBOUNDED / 2, form.upper < UNBOUNDED / 2
        rows = np.vstack([form.E, form.C[low], -form.C[high]])
        bounds = np.concatenate([form.e, form.lower[low], -form.upper[high]])
        try:
            solution = package.solve_qp(form.H, -form.g, rows.T.copy(), bounds, len(form.E))
        except ValueError:  # it calls dependent equality rows inconsistent
            return np.full(len(form.g), np.nan)
        return np.asarray(solution[0])

    return solve


def _proxsuite(package: Any) -> Solver:
    def solve(form: FullForm) -> Array:
        qp = package.proxqp.dense.QP(len(form.g), len(form.E), len(form.C))
        qp.settings.eps_abs = 1e-9
        qp.init(form.H, form.g, form.E, form.e, form.C, form.lower, form.upper)
        qp.solve()
        return np.asarray(qp.results.x)

    return solve


def _osqp(package: Any) -> Solver:
    sparse = importlib.import_module("scipy.sparse")

    def solve(form: FullForm) -> Array:
        qp = package.OSQP()
        rows = sparse.csc_matrix(np.vstack([form.E, form.C]))
        lower, upper = (np.concatenate([form.e, side]) for side in (form.lower, form.upper))
        hessian = sparse.csc_matrix(np.triu(form.H))
        qp.setup(hessian, form.g, rows, lower, upper, verbose=False, eps_abs=1e-6, eps_rel=1e-6)
        return np.asarray(qp.solve().x, dtype=float)

    return solve
