"""Linear controllers of others, such as python-control's, as laws that can be exported to C.

δu = C z + D δy,    z_next = A z + B δy,    u = u_0 + δu
"""

from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.regulators.feedback import caused_acceleration, finite_matrix
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import real_array
from mbcasadi.system import evaluate

SAME_PERIOD = 1e-9
"""Relative difference of two periods that is taken for rounding."""


@checked
def feedback_from_ss(
    linear: Linearization,
    controller: Any,
    *,
    output: ca.Function | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return the law of a linear controller from δy to δu, near an equilibrium.

    The sign is the controller's own: that of `K` of `control.lqr` is `ss([], [], [], -K)`, and
    `feedback(linear, K)` is the same law. u is clipped at its limits entry by entry; the states of
    the controller do not know of it.

    Args:
        linear: the linear system; the law holds its state with its control.
        controller: a `control.StateSpace`, or what has `A`, `B`, `C`, `D` and `dt`: s, of the law's
            period, unless it has no states.
        output: (q, [v]) → (y), as in `Linearization.to_ss`; x itself by default.
        options: see `LawOptions`.

    Raises:
        ShapeError: matrices of another size, or NaN.
        ProblemError: no such controller, or another sample time.
        UnknownNameError: the Function has an input other than q and v.
    """
    system, C_y = linear.system, None if output is None else linear.output_matrix(output)
    ny = linear.nx if C_y is None else len(C_y)
    A, B, C, D = _matrices(controller, ny, linear.nu)
    _require_period(controller, len(A), options.sample_time)
    names = () if output is None else (*output.name_in(),)
    start = {"q": linear.q, "v": linear.v}

    def deviation(at: LawInputs) -> ca.SX:
        if output is not None:
            y = evaluate(output, {"q": at.q, "v": at.v})
            return y - output(**{name: start[name] for name in names})[output.name_out(0)]
        dq, dv = system.difference(linear.q, at.q), at.v - linear.v
        x = ca.DM(linear.from_dq) @ dq + ca.DM(linear.from_dv) @ dv
        return x + ca.DM(linear.from_dact) @ (at.act - linear.act) if system.na else x

    def equations(at: LawInputs) -> Command:
        y, z = deviation(at), at.z.get("controller", ca.SX(0, 1))
        u = ca.SX(linear.u) + ca.DM(C) @ z + ca.DM(D) @ y
        return Command(
            u=u,
            a=caused_acceleration(system, at, u, options),
            z_next={"controller": ca.DM(A) @ z + ca.DM(B) @ y} if len(A) else {},
            error=-system.difference(linear.q, at.q),
            target=ca.SX.zeros(system.nv),
        )

    return make_law(
        system,
        "state_space",
        equations,
        LawInterface(
            tracked=deviations(system),
            states={"controller": np.zeros(len(A))} if len(A) else {},
            knows_activations=True,
            closes_state=False,
            notes={"law": "linear controller with states of its own"},
        ),
        options,
    )


def _matrices(controller: Any, ny: int, nu: int) -> tuple[Array, Array, Array, Array]:
    """Return A, B, C, D of a controller with ny inputs and nu outputs."""
    if missing := [name for name in ("A", "B", "C", "D", "dt") if not hasattr(controller, name)]:
        raise ProblemError(
            f"a {type(controller).__name__} has no {missing[0]}; expected a control.StateSpace"
        )
    A = real_array("A", controller.A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ShapeError(f"A has shape {A.shape}; expected a square matrix")
    n = len(A)
    shapes = {"D": (nu, ny), "C": (nu, n), "B": (n, ny), "A": (n, n)}
    D, C, B, A = (finite_matrix(k, getattr(controller, k), shape) for k, shape in shapes.items())
    return A, B, C, D


def _require_period(controller: Any, states: int, period: float) -> None:
    """Raise unless a controller with states is sampled at the law's period."""
    dt = controller.dt
    if not states or dt is True:
        return
    if dt is None or not dt:
        raise ProblemError(
            f"the controller is continuous; expected one of the law's period of {period:g} s: "
            f"control.c2d(controller, {period:g}), or another LawOptions(period=)"
        )
    if abs(dt - period) > SAME_PERIOD * period:
        raise ProblemError(
            f"the controller has a sample time of {dt:g} s, the law one of {period:g} s; expected "
            f"one: LawOptions(period={dt:g})"
        )
