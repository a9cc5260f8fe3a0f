"""The plan of a linear MPC: predicted states and controls, for reports and not for C.

x_0 = x0 predicted over the delay,   x_{k+1} = A_k x_k + B_k u_k + d_k,   u_k of the solution
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.status import Status
from mbcasadi.mpc.linear.interface import Interface
from mbcasadi.mpc.linear.parameters import parameters, past_controls_size, problem_inputs
from mbcasadi.mpc.linear.prediction import parameters_of, predict
from mbcasadi.mpc.linear.prediction_model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.linear.stages import LinearStages
from mbcasadi.qp.solver import candidate_fun


def prediction_fun(
    linear_stages: LinearStages, stages: LeastDistanceStages, function: ca.Function, solver: str
) -> ca.Function:
    """Return (inputs) → (x, u), one column for each sample; NaN where there is no valid plan.

    Args:
        parts: the problem of the stages.
        stages: they themselves.
        function: the whole controller.
        solver: as in `lti_mpc`.
    """
    theta_fun = parameters_fun(linear_stages.problem, linear_stages.interface, linear_stages.m)
    symbols = {name: ca.MX.sym(name, function.sparsity_in(name)) for name in function.name_in()}
    theta = theta_fun(*symbols.values())
    x = candidate_fun(stages, solver)(*symbols.values())
    y = ca.DM(linear_stages.qp.L_inv) @ x - (
        ca.DM(linear_stages.qp.K) @ theta + ca.DM(linear_stages.qp.k_0)
    )
    status = function.call(list(symbols.values()))[function.index_out("status")]
    prediction = predict(linear_stages.problem, parameters_of(linear_stages.problem), y.numel())
    columns = (_columns(maps, y, theta) for maps in (prediction.x, prediction.u))
    valid = status <= Status.SUBOPTIMAL
    plan = linear_stages.interface.plan(*(ca.if_else(valid, part, np.nan) for part in columns))
    return plan_fun(symbols, *plan)


def parameters_fun(problem: LinearProblem, interface: Interface, rows: int) -> ca.Function:
    """Return (inputs) → (θ) of a controller.

    Args:
        problem: whose parameters θ are.
        interface: of the controller.
        rows: entries of z before the past controls.
    """
    own_state = rows + past_controls_size(problem)
    symbols, inputs = problem_inputs(interface, ca.MX, own_state)
    theta, _ = parameters(problem, inputs.x0, inputs.ref, symbols["z"][rows:own_state, 0])
    return ca.Function("parameters", list(symbols.values()), [theta], list(symbols), ["theta"])


def plan_fun(symbols: dict[str, ca.MX], x: ca.MX, u: ca.MX) -> ca.Function:
    """Return the Function of a plan, dense."""
    outputs = [ca.densify(x), ca.densify(u)]
    return ca.Function("prediction", list(symbols.values()), outputs, list(symbols), ["x", "u"])


def _columns(maps: Sequence[tuple[Array, Array, Array]], y: ca.MX, theta: ca.MX) -> ca.MX:
    """Return one column for each sample of an affine map of y and θ."""
    of_y, of_theta, rest = (np.concatenate(part) for part in zip(*maps, strict=True))
    column = ca.DM(of_y) @ y + ca.DM(of_theta) @ theta + ca.DM(rest)
    return ca.reshape(column, len(maps[0][2]), len(maps))
