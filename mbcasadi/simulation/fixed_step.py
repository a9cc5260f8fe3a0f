"""Many steps of one size: a whole Runge-Kutta step is one Function, a thousand are another.

There is no error control, and no limit at singular poses: `simulate` has both. The thousand steps
are evaluated by CasADi, or as compiled C, which takes seconds to make and a fifth of the time.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.dynamics.formulations import DEFAULT
from mbcasadi.errors import MotionError, ProblemError
from mbcasadi.progress import LoggedProgress, Progress
from mbcasadi.shapes import column
from mbcasadi.simulation.assembly import assemble
from mbcasadi.simulation.buffered_function import Array, BufferedFunction
from mbcasadi.simulation.initial_state import initial_mask, require_on_manifold
from mbcasadi.simulation.manifold import Manifold
from mbcasadi.simulation.options import EquationOptions, InitialConditions
from mbcasadi.simulation.recorder import Recorder
from mbcasadi.simulation.right_hand_side import RightHandSide
from mbcasadi.simulation.step_function import fixed_step_fun
from mbcasadi.simulation.trajectory import Trajectory
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values

STATE = 4  # leading inputs of a step that its outputs replace: q, v, act, drift


@checked
@at_model_values
def simulate_fixed_step(
    system: System,
    q0: ArrayLike,
    v0: ArrayLike,
    step: float,
    count: int,
    formulation: str = DEFAULT,
    *,
    keep: int = 1000,
    force: ca.Function | None = None,
    u: ArrayLike | None = None,
    initial: InitialConditions | None = None,
    equations: EquationOptions | None = None,
    compiled: bool = False,
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
        compiled: evaluate the steps as compiled C, some seconds of a C compiler first; the same
            steps are compiled once in a process.
        progress: called with a text and a share from 0 to 1.

    Raises:
        ShapeError, UnknownNameError, ProblemError: an argument does not fit.
        CompilerError: `compiled`, and there is no C compiler.
        AssemblyError: no pose near q0 closes the constraints.
        MotionError: the motion became NaN or infinite.
    """
    _require_whole_blocks(step, count, keep)
    initial, equations = initial or InitialConditions(), equations or EquationOptions()
    report = progress or LoggedProgress()
    mask, t0 = initial_mask(system, initial.mask), initial.t0
    control = column("u", np.zeros(system.nu) if u is None else u, system.nu)
    manifold = Manifold(system, equations, mask)
    q, v, act = _start(manifold, q0, v0, initial)
    single = fixed_step_fun(system, step, formulation, force=force, equations=equations)
    steps = block_fun(single, keep)
    if compiled:
        report("compiling the steps", 0.0)
        steps = compiled_function(steps)
    block = BufferedFunction(steps)
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
        report("simulating", (k + keep) / count)
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


def block_fun(step: ca.Function, count: int) -> ca.Function:
    """Return (q, v, act, drift, times, mask, u) → the first four after `count` steps."""
    repeated = step.mapaccum("steps", count, STATE)
    s = {name: ca.MX.sym(name, step.numel_in(name)) for name in step.name_in()}
    times = ca.MX.sym("times", 1, count)
    constant = [ca.repmat(s[name], 1, count) for name in ("mask", "u")]
    outputs = repeated(*[s[name] for name in list(s)[:STATE]], times, *constant)
    inputs = [*list(s.values())[:STATE], times, s["mask"], s["u"]]
    return ca.Function("block", inputs, [x[:, -1] for x in outputs[:STATE]])


def _with_drift(trajectory: Trajectory, drifts: list[Array], count: int) -> Trajectory:
    drift = np.array(drifts)
    return replace(
        trajectory,
        drift=drift[:, 0],
        drift_velocity=drift[:, 1],
        steps=count,
        evaluations=4 * count,
    )
