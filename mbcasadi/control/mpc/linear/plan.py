"""The plan of a linear MPC: predicted states and controls, for reports and not for C.

x_0 = x0 predicted over the delay,   x_{k+1} = A_k x_k + B_k u_k + d_k,   u_k of the solution
"""

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.control.linear.linearization import Linearization
from mbcasadi.control.mpc.linear.model import Array
from mbcasadi.control.mpc.linear.predicted import predict
from mbcasadi.control.mpc.linear.problem import LinearProblem
from mbcasadi.control.mpc.linear.stages import LinearStages, known
from mbcasadi.control.solver import candidate_fun
from mbcasadi.control.stages import SUBOPTIMAL
from mbcasadi.description import LeastDistanceStages

INPUTS = ("x0", "ref", "z")


def planned_fun(
    made: LinearStages, stages: LeastDistanceStages, function: ca.Function, solver: str
) -> ca.Function:
    """Return (x0, ref, z) → (x, u): (nx, N + 1), (nu, N); NaN where the solution is rejected.

    Args:
        made: the problem of the stages.
        stages: the stages.
        function: the whole controller.
        solver: as in `lti_mpc`.
    """
    given = {name: ca.MX.sym(name, function.sparsity_in(name)) for name in INPUTS}
    theta, _ = made.theta(given)
    found = candidate_fun(stages, solver)(*given.values())
    y = ca.DM(made.qp.L_inv) @ found - (ca.DM(made.qp.K) @ theta + ca.DM(made.qp.k_0))
    counts = function.call(list(given.values()))[2] <= SUBOPTIMAL
    predicted = predict(made.problem, made.places, y.numel())
    columns = (_columns(part, y, theta) for part in (predicted.x, predicted.u))
    return _planned(given, *(ca.if_else(counts, part, np.nan) for part in columns))


def parameters_fun(problem: LinearProblem, function: ca.Function) -> ca.Function:
    """Return (x0, ref, z) → (θ) of a law."""
    given = {name: ca.MX.sym(name, function.sparsity_in(name)) for name in INPUTS}
    past = given["z"][given["z"].numel() - problem.kept * problem.model.nu :, 0]
    theta, _ = known(problem, given["x0"], given["ref"], past)
    return ca.Function("parameters", list(given.values()), [theta], list(given), ["theta"])


def plan_of_mechanism(
    linear: Linearization, prediction: ca.Function, sizes: Mapping[str, int], own: Any
) -> ca.Function:
    """Return (q, v, ref, z) → (x, u) with columns (q, v) and u of the mechanism.

    Args:
        linear: the operating point of the plan.
        prediction: of the deviations.
        sizes: of the inputs.
        own: gives the inputs of `prediction` from them.
    """
    system = linear.system
    given = {name: ca.MX.sym(name, size) for name, size in sizes.items()}
    x, du = prediction.call(own(given))
    x = x[: linear.nx, :]
    samples = x.shape[1]
    q_0 = ca.repmat(ca.DM(linear.q), 1, samples)
    q = system.integrate.map(samples)(q_0, ca.DM(linear.to_dq) @ x)
    v = ca.repmat(ca.DM(linear.v), 1, samples) + ca.DM(linear.to_dv) @ x
    u = ca.repmat(ca.DM(linear.u), 1, du.shape[1]) + du
    return _planned(given, ca.vertcat(q, v), u)


def _columns(maps: Sequence[tuple[Array, Array, Array]], y: ca.MX, theta: ca.MX) -> ca.MX:
    """Return one column for each sample of an affine map of y and θ."""
    of_y, of_theta, rest = (np.concatenate(part) for part in zip(*maps, strict=True))
    stacked = ca.DM(of_y) @ y + ca.DM(of_theta) @ theta + ca.DM(rest)
    return ca.reshape(stacked, len(maps[0][2]), len(maps))


def _planned(given: Mapping[str, ca.MX], x: ca.MX, u: ca.MX) -> ca.Function:
    outputs = [ca.densify(x), ca.densify(u)]
    return ca.Function("prediction", list(given.values()), outputs, list(given), ["x", "u"])
