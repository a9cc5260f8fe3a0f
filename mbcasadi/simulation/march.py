"""Many steps of one size: a whole Runge-Kutta step is one Function, a thousand are another.

    k1 = F(y),  k2 = F(Π(y + h k1/2)),  k3 = F(Π(y + h k2/2)),  k4 = F(Π(y + h k3)),
    y⁺ = Π(y + h (k1 + 2 k2 + 2 k3 + k4)/6)

Π is a fixed number of Newton's steps, so that the operations do not depend on the data. There
is no error control, and no limit at singular poses: `simulate` has both.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.errors import MotionError, ProblemError
from mbcasadi.linalg import RANK_TOL
from mbcasadi.shapes import column
from mbcasadi.simulation.assembly import assemble
from mbcasadi.simulation.call import Array, Call
from mbcasadi.simulation.flow import Flow
from mbcasadi.simulation.functions import (
    Rule,
    newton_fun,
    nonlinear_rates,
    rate_fun,
    tangent_fun,
    unrolled,
)
from mbcasadi.simulation.manifold import Manifold
from mbcasadi.simulation.recorder import Recorder
from mbcasadi.simulation.runner import Progress
from mbcasadi.simulation.start import initial_mask
from mbcasadi.simulation.trajectory import Trajectory
from mbcasadi.system import System

STATE = 4  # leading inputs of a step that its outputs replace: q, v, act, drift

NEWTON_STEPS = 2
"""A step of h leaves gaps of h² before them, h⁸ after them."""


def march(
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
    mask: ArrayLike | None = None,
    t0: float = 0.0,
    row_scale: float = 1.0,
    rank_tol: float = RANK_TOL,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Return the motion over `count` steps of one size, for long runs of regular mechanisms.

    Classical Runge-Kutta of order 4, projected at every stage; evaluated without Python in
    between. The start is assembled.

    Args:
        system: the mechanism.
        q0, v0: (nq,), (nv,) start.
        step: s.
        count: number of steps, a multiple of `keep`.
        formulation: one of `dynamics.FORMULATIONS`.
        keep: one state out of so many is kept. `drift` and `drift_velocity` are those of all
            steps since the last one that was kept.
        force: a Function (t, q, v) → (nv,), the applied force; none by default.
        u: (nu,) constant control, zero by default.
        mask: (nc,) active rows, one or zero; the system's own by default.
        t0: s, start.
        row_scale, rank_tol, options, progress: as in `simulate`.

    Raises:
        ShapeError, UnknownNameError, ProblemError: what was given does not fit.
        AssemblyError: no pose near q0 closes the constraints.
        MotionError: the motion became NaN or infinite.
    """
    if not (np.isfinite(step) and step > 0 and keep >= 1 and count >= keep and count % keep == 0):
        raise ProblemError(
            f"step is {step} s, count {count}, keep {keep}; expected a step above 0 and a count "
            "that is a multiple of keep"
        )
    rule = Rule(formulation, row_scale, rank_tol, dict(options or {}))
    active = initial_mask(system, mask)
    held = column("u", np.zeros(system.nu) if u is None else np.asarray(u), system.nu)
    block = Call(_block_fun(system, rule, force, step, keep))
    manifold = Manifold(system, rule, active)
    q = assemble(system, q0, t=t0, mask=active)
    v = manifold.admissible(q, column("v0", np.asarray(v0), system.nv), t0).v
    flow = Flow(system, rule, manifold, "stage", None if force is None else force)
    flow.u = held
    recorder = Recorder()
    act = np.zeros(system.na)
    recorder.add(flow, t0, q, v, act)
    worst = [np.zeros(2)]
    for k in range(0, count, keep):
        times = t0 + step * np.arange(k, k + keep, dtype=np.float64)
        q, v, act, drift = block(q, v, act, np.zeros(2), times, active, held)
        t = t0 + step * (k + keep)
        if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
            reached = recorder.finish(system, rule, flow)
            raise MotionError(f"'{system.name}': the motion is NaN or infinite at {t:g} s", reached)
        recorder.add(flow, t, q, v, act)
        worst.append(drift)
        if progress:
            progress("simulating", (k + keep) / count)
    return _with_drift(recorder.finish(system, rule, flow), worst, count)


def _block_fun(
    system: System, rule: Rule, force: ca.Function | None, h: float, count: int
) -> ca.Function:
    """Return (q, v, act, drift, times, mask, u) → the same four after `count` steps."""
    step = _step_fun(system, rule, force, h)
    if unrolled(system):
        step = step.expand(step.name(), {"cse": True})
    many = step.mapaccum("steps", count, STATE)
    s = {name: ca.MX.sym(name, step.numel_in(name)) for name in step.name_in()}
    times = ca.MX.sym("times", 1, count)
    held = [ca.repmat(s[name], 1, count) for name in ("mask", "u")]
    out = many(*[s[name] for name in list(s)[:STATE]], times, *held)
    inputs = [*list(s.values())[:STATE], times, s["mask"], s["u"]]
    return ca.Function("block", inputs, [x[:, -1] for x in out])


def _step_fun(system: System, rule: Rule, force: ca.Function | None, h: float) -> ca.Function:
    """Return one step, (q, v, act, drift, t, mask, u) → (q, v, act, drift)."""
    nv = system.nv
    sizes = {"q": system.nq, "v": nv, "act": system.na, "drift": 2, "t": 1}
    sizes |= {"mask": system.nc, "u": system.nu}
    s: dict[str, ca.MX] = {name: ca.MX.sym(name, size) for name, size in sizes.items()}
    newton, tangent = newton_fun(system, rule), tangent_fun(system, rule)
    rate = rate_fun(system, rule)
    offset = ca.DM.zeros(system.nc)
    nonlinear = nonlinear_rates(system)

    def settled(y: ca.MX, t: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX]:
        q, v = system.integrate(s["q"], y[:nv]), y[nv : 2 * nv]
        for _ in range(NEWTON_STEPS if system.nc else 0):
            q = newton.call([q, t, s["mask"], offset])[0]
        for _ in range(NEWTON_STEPS if nonlinear else 1):
            found: list[ca.MX] = tangent.call([q, v, t, s["mask"], offset])
            v = found[0]
        return q, v, ca.vertcat(found[1], found[-1])

    def F(q: ca.MX, v: ca.MX, act: ca.MX, t: ca.MX) -> ca.MX:
        f = ca.DM.zeros(nv) if force is None else force(t, q, v)
        return ca.vcat(rate.call([s["q"], q, v, t, act, s["u"], f, s["mask"]]))

    start = ca.vertcat(ca.DM.zeros(nv), s["v"], s["act"])
    t, y, k = s["t"], start, [F(s["q"], s["v"], s["act"], s["t"])]
    for share in (0.5, 0.5, 1.0):
        y = start + share * h * k[-1]
        q, v, _ = settled(y, t + share * h)
        k.append(F(q, v, y[2 * nv :], t + share * h))
    y = start + h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
    q, v, drift = settled(y, t + h)
    out = [q, v, y[2 * nv :], ca.fmax(s["drift"], drift)]
    names = ["q_next", "v_next", "act_next", "drift_next"]
    return ca.Function("step", list(s.values()), out, list(s), names)


def _with_drift(trajectory: Trajectory, worst: list[Array], count: int) -> Trajectory:
    drift = np.array(worst)
    return replace(
        trajectory,
        drift=drift[:, 0],
        drift_velocity=drift[:, 1],
        steps=count,
        evaluations=4 * count,
    )
