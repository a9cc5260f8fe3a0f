"""Inverse dynamics of a linear system: the control for a desired rate, and whether there is one.

The linear system is that of the mechanism on its constraint manifold: it includes the loops, so
a tick only multiplies by constant matrices.
"""

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Array, Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_numbers
from mbcasadi.system.sizes import control_sizes

CONSISTENT = 1e-6
"""Part of the desired rate outside range(B), relative to the terms that it is the sum of, above
which it is unattainable."""

DESCRIPTOR_INPUT_TOL = 1e-10
"""Singular value of dfdu, relative to the largest in the sizes of controls, that counts as zero."""


@checked
def lti_inverse_dynamics(
    linear: Linearization,
    *,
    kp: float = 100.0,
    kd: float | None = None,
    tolerance: float = CONSISTENT,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = u_0 + B⁺ (dx/dt - A x - c)`  [S20, eq. 15].

    Its test is `(I - B B⁺)(dx/dt - A x - c) = 0`  [S20, eq. 14].
    `x = (ξ, η)`, `A = dfdx`, `B = dfdu`, `c = drift` are those of `linearize`. The desired rate is

        dξ/dt of the model,   dη/dt = η̇_ref + kd (η_ref - η) + kp Z_vᵀ W Z_q (ξ_ref - ξ)

    so that (14) is a condition on accelerations only. The reference holds `xi`, `eta` (of
    `Linearization.coordinates`) and `eta_dot`.

    A mask has no effect: the rows that are on are those of the linear model.

    It holds near the operating point: the error grows with the square of the distance. Status 2
    means that (14) fails: fewer actuators than freedoms, and a motion that they cannot cause; u is
    then the nearest in x. Of redundant actuators it is the least, each control by the largest
    torque that it gives. At saturation u is clipped entry by entry.

    Args:
        linear: a continuous linear system.
        kp, kd: 1/s², 1/s; kd is critical by default.
        tolerance: largest allowed part of the desired acceleration outside range(B), relative to
            it.
        options: see `LawOptions`; its `rank_tol` is that of dfdu.

    Raises:
        ProblemError: a discrete linear system, or the options do not fit.
    """
    if linear.period is not None:
        raise ProblemError("a discrete linear system; expected the continuous one of linearize()")
    require_numbers(kp=kp)
    kd = 2 * float(np.sqrt(kp)) if kd is None else kd
    require_numbers(kp=kp, kd=kd, tolerance=tolerance)
    n_q, system = linear.n_q, linear.system
    B = linear.dfdu
    sizes = control_sizes(system)[:, None]
    tol = DESCRIPTOR_INPUT_TOL if options.rank_tol is None else options.rank_tol
    B_pinv: Array = np.asarray(np.linalg.pinv(B / sizes.T, tol) / sizes)
    outside = np.eye(linear.nx) - B @ B_pinv
    pull = np.hstack([kp * linear.to_eta @ linear.Z_q, kd * np.eye(linear.n_v)])

    def equations(at: LawInputs) -> Command:
        dq = system.difference(linear.q, at.q)
        x = _product(linear.from_dq, dq) + _product(linear.from_dv, at.v - ca.DM(linear.v))
        error = ca.vertcat(at.ref["xi"], at.ref["eta"]) - x
        rate = _product(linear.dfdx, x) + ca.DM(linear.drift)  # A x + c
        eta_dot = at.ref["eta_dot"] + _product(pull, error)
        missing = ca.vertcat(ca.SX.zeros(n_q), eta_dot - rate[n_q:])
        unreachable = _product(outside, missing)
        terms = ca.sumsqr(missing) + ca.sumsqr(eta_dot) + ca.sumsqr(rate[n_q:])
        return Command(
            u=ca.DM(linear.u) + _product(B_pinv, missing),
            a=_product(linear.slope, rate[:n_q]) + _product(linear.Z_v, eta_dot),
            residual={"rate": unreachable},
            attainable=ca.sumsqr(unreachable) <= tolerance**2 * terms,
            error=error[:n_q],
            target=at.ref["xi"],
        )

    slots = {"xi": n_q, "eta": linear.n_v, "eta_dot": linear.n_v}
    return make_law(
        system,
        "lti_inverse_dynamics",
        equations,
        LawInterface(
            slots=[
                Slot(key, tuple(f"{key}{i}" for i in range(size)), ("",) * size)
                for key, size in slots.items()
            ],
            hold=lambda q: {"xi": linear.coordinates(q, np.zeros(system.nv))[:n_q]},
            tracked=[(f"xi{i}", "") for i in range(n_q)],
            closes_state=False,
            notes={"law": "LTI inverse dynamics [S20, eq. 14-15]"},
        ),
        options,
    )


def _product(matrix: Array, column: ca.SX) -> ca.SX:
    """Return a product with a constant matrix, its zeros left out."""
    return ca.SX(ca.sparsify(ca.DM(matrix)) @ column)
