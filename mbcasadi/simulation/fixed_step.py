"""Many steps of one size: a whole Runge-Kutta step is one Function, a thousand are another.

    k1 = F(y),  k2 = F(Π(y + h k1/2)),  k3 = F(Π(y + h k2/2)),  k4 = F(Π(y + h k3)),
    y⁺ = Π(y + h (k1 + 2 k2 + 2 k3 + k4)/6)

Π is a fixed number of Newton's steps, so that the operations do not depend on the data. There
is no error control, and no limit at singular poses: `simulate` has both.
"""

from collections.abc import Callable
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import MotionError, ProblemError
from mbcasadi.shapes import column
from mbcasadi.simulation.assembly import assemble
from mbcasadi.simulation.buffered_function import Array, BufferedFunction
from mbcasadi.simulation.functions import (
    constraints_unroll,
    has_nonlinear_rates,
    newton_fun,
    rate_fun,
    tangent_fun,
)
from mbcasadi.simulation.initial_state import initial_mask, require_on_manifold
from mbcasadi.simulation.manifold import Manifold
from mbcasadi.simulation.options import EquationOptions, InitialConditions, Progress
from mbcasadi.simulation.recorder import Recorder
from mbcasadi.simulation.right_hand_side import RightHandSide
from mbcasadi.simulation.trajectory import Trajectory
from mbcasadi.system import System

STATE = 4  # leading inputs of a step that its outputs replace: q, v, act, drift

NEWTON_STEPS = 2
"""A step of h leaves gaps of h² before them, h⁸ after them."""


@checked
def simulate_fixed_step(
    system: System,
    q0: ArrayLike,
    v0: ArrayLike,
    step: float,
    count: int,
    formulation: str = "projection",
    *,
    keep: int = 1000,
    force: ca.Function | None = None,
    u: ArrayLike | None = None,
    initial: InitialConditions | None = None,
    equations: EquationOptions | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Return the motion over `count` steps of one size, for long runs of regular mechanisms.

    Classical Runge-Kutta of order 4, projected at every stage; evaluated without Python in
    between.

    Args:
        system: the mechanism.
        q0, v0: (nq,), (nv,) start; it is assembled.
        step: s.
        count: number of steps, a multiple of `keep`.
        formulation: one of `dynamics.FORMULATIONS`.
        keep: one state out of so many is kept. `drift` and `drift_velocity` are those of all
            steps since the last one that was kept.
        force: a Function (t, q, v) → (nv,), the applied force; none by default.
        u: (nu,) constant control, zero by default.
        initial: time, activations and active rows at the start; whether it is assembled.
        equations: drop rule of dependent rows, stabilisation, options of the formulation.
        progress: called with a text and a share from 0 to 1.

    Raises:
        ShapeError, UnknownNameError, ProblemError: an argument does not fit.
        AssemblyError: no pose near q0 closes the constraints.
        MotionError: the motion became NaN or infinite.
    """
    _require_whole_blocks(step, count, keep)
    initial, equations = initial or InitialConditions(), equations or EquationOptions()
    mask, t0 = initial_mask(system, initial.mask), initial.t0
    control = column("u", np.zeros(system.nu) if u is None else u, system.nu)
    manifold = Manifold(system, equations, mask)
    q, v, act = _start(manifold, q0, v0, initial)
    single = _step_fun(system, formulation, equations, force, step)
    block = BufferedFunction(_block_fun(single, keep, unrolled=constraints_unroll(system)))
    motion = RightHandSide(manifold, formulation, equations, force=force)
    motion.u = control
    recorder = Recorder()
    recorder.add(motion, t0, q, v, act)
    drifts = [np.zeros(2)]
    for k in range(0, count, keep):
        times = t0 + step * np.arange(k, k + keep, dtype=np.float64)
        q, v, act, drift = block(q, v, act, np.zeros(2), times, mask, control)
        t = t0 + step * (k + keep)
        if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
            reached = recorder.trajectory(motion, formulation, equations)
            raise MotionError(f"'{system.name}': the motion is NaN or infinite at {t:g} s", reached)
        recorder.add(motion, t, q, v, act)
        drifts.append(drift)
        if progress:
            progress("simulating", (k + keep) / count)
    return _with_drift(recorder.trajectory(motion, formulation, equations), drifts, count)


def _require_whole_blocks(step: float, count: int, keep: int) -> None:
    if not (np.isfinite(step) and step > 0 and keep >= 1 and count >= keep and count % keep == 0):
        raise ProblemError(
            f"step is {step} s, count {count}, keep {keep}; expected a step above 0 and a count "
            "that is a multiple of keep"
        )


def _start(
    manifold: Manifold, q0: ArrayLike, v0: ArrayLike, initial: InitialConditions
) -> tuple[Array, Array, Array]:
    """Return (q, v, act) at the start, on the manifold."""
    system, t0 = manifold.system, initial.t0
    act = np.zeros(system.na) if initial.act is None else initial.act
    act = column("act", act, system.na)
    q, v = column("q0", q0, system.nq), column("v0", v0, system.nv)
    if initial.assemble:
        q = assemble(system, q, t=t0, mask=manifold.mask)
        return q, manifold.admissible(q, v, t0).v, act
    require_on_manifold(manifold.admissible(q, v, t0))
    return q, v, act


def _block_fun(step: ca.Function, count: int, *, unrolled: bool) -> ca.Function:
    """Return (q, v, act, drift, times, mask, u) → the first four after `count` steps."""
    if unrolled:
        step = step.expand(step.name(), {"cse": True})
    repeated = step.mapaccum("steps", count, STATE)
    s = {name: ca.MX.sym(name, step.numel_in(name)) for name in step.name_in()}
    times = ca.MX.sym("times", 1, count)
    constant = [ca.repmat(s[name], 1, count) for name in ("mask", "u")]
    outputs = repeated(*[s[name] for name in list(s)[:STATE]], times, *constant)
    inputs = [*list(s.values())[:STATE], times, s["mask"], s["u"]]
    return ca.Function("block", inputs, [x[:, -1] for x in outputs])


def _step_fun(
    system: System,
    formulation: str,
    equations: EquationOptions,
    force: ca.Function | None,
    h: float,
) -> ca.Function:
    """Return one step, (q, v, act, drift, t, mask, u) → (q, v, act, drift)."""
    nv = system.nv
    sizes = {"q": system.nq, "v": nv, "act": system.na, "drift": 2, "t": 1}
    sizes |= {"mask": system.nc, "u": system.nu}
    s: dict[str, ca.MX] = {name: ca.MX.sym(name, size) for name, size in sizes.items()}
    project = _projection(system, equations, s["mask"])
    rate = rate_fun(system, formulation, equations)

    def state(y: ca.MX, t: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX]:
        return project(system.integrate(s["q"], y[:nv]), y[nv : 2 * nv], t)

    def F(q: ca.MX, v: ca.MX, act: ca.MX, t: ca.MX) -> ca.MX:
        f = ca.DM.zeros(nv) if force is None else force(t, q, v)
        return ca.vcat(rate.call([s["q"], q, v, t, act, s["u"], f, s["mask"]]))

    start = ca.vertcat(ca.DM.zeros(nv), s["v"], s["act"])
    t, y, k = s["t"], start, [F(s["q"], s["v"], s["act"], s["t"])]
    for share in (0.5, 0.5, 1.0):
        y = start + share * h * k[-1]
        q, v, _ = state(y, t + share * h)
        k.append(F(q, v, y[2 * nv :], t + share * h))
    y = start + h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
    q, v, drift = state(y, t + h)
    outputs = [q, v, y[2 * nv :], ca.fmax(s["drift"], drift)]
    names = ["q_next", "v_next", "act_next", "drift_next"]
    return ca.Function("step", list(s.values()), outputs, list(s), names)


def _projection(
    system: System, equations: EquationOptions, mask: ca.MX
) -> Callable[[ca.MX, ca.MX, ca.MX], tuple[ca.MX, ca.MX, ca.MX]]:
    """Return (q, v, t) → (q, v, drift) after Newton's steps, drift of phi and of psi."""
    newton, tangent = newton_fun(system, equations), tangent_fun(system, equations)
    offset = ca.DM.zeros(system.nc)
    corrections = NEWTON_STEPS if has_nonlinear_rates(system) else 1

    def project(q: ca.MX, v: ca.MX, t: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX]:
        for _ in range(NEWTON_STEPS if system.nc else 0):
            q = newton.call([q, t, mask, offset])[0]
        for _ in range(corrections):
            v, gap, _, _, _, slip, _ = tangent.call([q, v, t, mask, offset])
        return q, v, ca.vertcat(gap, slip)

    return project


def _with_drift(trajectory: Trajectory, drifts: list[Array], count: int) -> Trajectory:
    drift = np.array(drifts)
    return replace(
        trajectory,
        drift=drift[:, 0],
        drift_velocity=drift[:, 1],
        steps=count,
        evaluations=4 * count,
    )
