"""The controller's problem at one instant as a nonlinear program for `ca.nlpsol`.

    min ½ xᵀ x   subject to   A x >= lba, A x <= uba,   s_0 >= (s_1² + s_2² + ε²)^½

of the whitened unknown x (`qp/whitening.py`), with the torque limits, the limits of normal forces
and the friction cones of the controller. Rows have unit length, cones are over their rows' lengths.
The apex of a cone is rounded by `ε = ROUNDED`, in which an interior-point solver has fewer digits
than the controller itself.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.qp_stages import CONE_ROWS, UNBOUNDED, ZERO_ROW

Array = NDArray[np.float64]

ROUNDED = 1e-5
"""Distance of a rounded apex from that of its cone, in the unit of x."""

FREE = 1.0
"""Value of a constraint `g >= 0` whose bound is none."""


@dataclass(frozen=True)
class InstantNLP:
    """A nonlinear program, its bounds, and the Functions around it.

    Attributes:
        nlp: `x` (n,), `p`, `f`, `g` for `ca.nlpsol(name, solver, nlp)`.
        lbg, ubg: (ng,) bounds of g, zero and infinity.
        parameters: the controller's inputs without `z`, by name → (p).
        answer: (x, p) → (actuator_force, a, contact_force): (nu,), (nv,), (3 nc,) of a solution.
    """

    nlp: dict[str, ca.MX]
    lbg: Array
    ubg: Array
    parameters: ca.Function
    answer: ca.Function


def instant_nlp(stages: LeastDistanceStages, z0: Array, inspect: ca.Function) -> InstantNLP:
    """Return the nonlinear program of a controller.

    Args:
        stages: the controller's.
        z0: (nz,) its initial state; the program does not depend on it.
        inspect: (inputs, x) → quantities at x, see `inspection_fun`.
    """
    inputs = {name: ca.MX.sym(name, s) for name, s in stages.inputs.items() if name != "z"}
    p = ca.MX.sym("p", sum(value.numel() for value in inputs.values()))
    ends = np.cumsum([0, *(value.numel() for value in inputs.values())])
    parts = dict(zip(inputs, ca.vertsplit(p, ends.tolist()), strict=True))
    A, lower, upper = stages.problem().call([*parts.values(), ca.MX(ca.DM(z0))])[:3]
    x = ca.MX.sym("x", stages.n)
    g = ca.vertcat(*constraints(A, lower, upper, x, stages.cones))
    found = inspect(**parts, x=x)
    outputs = [found[name] for name in ("p", "a", "contact_force")]
    names = ["actuator_force", "a", "contact_force"]
    return InstantNLP(
        nlp={"x": x, "p": p, "f": ca.sumsqr(x) / 2, "g": g},
        lbg=np.zeros(g.numel()),
        ubg=np.full(g.numel(), np.inf),
        parameters=ca.Function(
            "parameters", list(inputs.values()), [ca.vertcat(*inputs.values())], list(inputs), ["p"]
        ),
        answer=ca.Function("answer", [x, p], outputs, ["x", "p"], names),
    )


def constraints(A: ca.MX, lower: ca.MX, upper: ca.MX, x: ca.MX, cones: int) -> list[ca.MX]:
    """Return g with `g >= 0`: both sides of the rows, then one number of each cone.

    Args:
        A, lower, upper: (m, n), (m,), (m,) of the least-distance problem.
        x: (n,) its unknown.
        cones: number of quadratic cones, whose rows are the last ones.
    """
    length = ca.sqrt(ca.sum2(A**2))
    scale = 1 / ca.fmax(length, ZERO_ROW * ca.mmax(length))
    value, first = A @ x, A.shape[0] - CONE_ROWS * cones
    rows = slice(0, first)
    g = [
        ca.if_else(ca.fabs(bound) < UNBOUNDED, gap * scale[rows], FREE)
        for bound, gap in (
            (lower[rows], value[rows] - lower[rows]),
            (upper[rows], upper[rows] - value[rows]),
        )
    ]
    for i in range(first, A.shape[0], CONE_ROWS):
        cone = slice(i, i + CONE_ROWS)
        s = (value[cone] - lower[cone]) * ca.mmin(scale[cone])
        g.append(s[0] - ca.sqrt(s[1] ** 2 + s[2] ** 2 + ROUNDED**2))
    return g
