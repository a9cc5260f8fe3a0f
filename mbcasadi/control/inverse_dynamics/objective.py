"""The cost of the QP: tasks, and the regularisation by forces."""

import casadi as ca
import numpy as np

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.scales import ForceWeights
from mbcasadi.control.inverse_dynamics.weighed_forces import WeighedForces


def objective(
    problem: Problem,
    condensed: Condensed,
    weights: ForceWeights,
    forces: WeighedForces,
) -> tuple[ca.SX, ca.SX]:
    """Return the QP's cost at y = (p, w) = 0: lower triangle of the Hessian, gradient (n,).

    The Hessian (k, k) is that of p where nothing couples w with it: that of w is `r_w I`.
    """
    nw, tasks = problem.contacts.of_w.shape[1], problem.tasks
    r_p, r_w = ca.DM(weights.actuators), weights.internal
    E_rows = linalg.product(condensed.T.T, tasks.J.T)
    missing = tasks.weight * (linalg.product(tasks.J, condensed.t) + tasks.offset)
    H = linalg.weighted_gram(E_rows, tasks.weight, r_p)
    g = ca.vertcat(linalg.product(E_rows, missing) - r_p * problem.p_ref, ca.DM.zeros(nw))
    if np.any(forces.weights) and forces.of_lam.shape[1]:
        F, f = forces.map(condensed)
        push = ca.DM(forces.weights)
        H = ca.diagcat(H, r_w * ca.DM.eye(nw)) + linalg.weighted_gram(F.T, push)
        g += linalg.product(F.T, push * (f - forces.ref))
    return H, ca.densify(g)
