"""One step of a fixed size, projected at every stage, as one Function."""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.formulations import DEFAULT
from mbcasadi.shapes import require_positive
from mbcasadi.simulation.active_rows import constraints_unroll
from mbcasadi.simulation.chord_steps import ChordSteps
from mbcasadi.simulation.functions import rate_fun
from mbcasadi.simulation.options import EquationOptions
from mbcasadi.system import System
from mbcasadi.system.parametric import takes_parameters

MOST_SCALARS = 45_000
"""Operations up to which a step is one Function of scalars. Measured as C: Bricard's loop with 37 k
takes 7.2 µs as one and 9.1 as nested Functions, a gripper's loops with 62 k take 15.8 and 12.7."""


@checked
@takes_parameters
def fixed_step_fun(
    system: System,
    step: float,
    formulation: str = DEFAULT,
    *,
    force: ca.Function | None = None,
    equations: EquationOptions | None = None,
) -> ca.Function:
    """Return one classical Runge-Kutta step of order 4, projected at every stage.

    (q, v, act, drift, t, mask, u) → (q_next, v_next, act_next, drift_next, t_next), with

        k1 = F(y),  k2 = F(Π(y + h k1/2)),  k3 = F(Π(y + h k2/2)),  k4 = F(Π(y + h k3)),
        y⁺ = Π(y + h (k1 + 2 k2 + 2 k3 + k4)/6)

    Π is a fixed number of Newton's steps (`chord_steps`), so that the operations do not depend on
    the data. The start is a state of the mechanism; `drift` (2,) is the largest gap of phi and of
    psi so far.

    Args:
        system: the mechanism.
        step: h, s.
        formulation: one of `dynamics.FORMULATIONS`.
        force: a Function (t, q, v) → (nv,), the applied force; none by default.
        equations: drop rule of dependent rows, stabilisation, options of the formulation.

    Raises:
        ProblemError, UnknownNameError: an argument does not fit.
    """
    require_positive(step=step)
    h, nv, equations = step, system.nv, equations or EquationOptions()
    sizes = {"q": system.nq, "v": nv, "act": system.na, "drift": 2, "t": 1}
    sizes |= {"mask": system.nc, "u": system.nu}
    s: dict[str, ca.MX] = {name: ca.MX.sym(name, size) for name, size in sizes.items()}
    back = ChordSteps(system, equations, s["mask"])
    unrolled = constraints_unroll(system)  # scalars are differentiated operation by operation
    rate = rate_fun(system, formulation, equations, derivatives=not unrolled)

    def proposed(y: ca.MX) -> tuple[ca.MX, ca.MX]:
        return system.integrate(s["q"], y[:nv]), y[nv : 2 * nv]

    def F(q: ca.MX, v: ca.MX, act: ca.MX, t: ca.MX) -> ca.MX:
        f = ca.DM.zeros(nv) if force is None else force(t, q, v)
        return ca.vcat(rate.call([s["q"], q, v, t, act, s["u"], f, s["mask"]]))

    start = ca.vertcat(ca.DM.zeros(nv), s["v"], s["act"])
    t, y, k = s["t"], start, [F(s["q"], s["v"], s["act"], s["t"])]
    for share in (0.5, 0.5, 1.0):
        y = start + share * h * k[-1]
        q, v = back.stage(*proposed(y), t + share * h)
        k.append(F(q, v, y[2 * nv :], t + share * h))
    y = start + h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
    q, v, drift = back.end(*proposed(y), t + h)
    outputs = [q, v, y[2 * nv :], ca.fmax(s["drift"], drift), t + h]
    names = ["q_next", "v_next", "act_next", "drift_next", "t_next"]
    function = ca.Function("step", list(s.values()), outputs, list(s), names)
    if not unrolled:
        return function
    scalars = function.expand("step", {"cse": True})
    return scalars if scalars.n_instructions() <= MOST_SCALARS else function
