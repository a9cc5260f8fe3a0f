"""The plan of a tick as states and controls, from its inputs and outputs."""

import casadi as ca
import numpy as np

from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.mpc.rti.memory import Guess, GuessMemory
from mbcasadi.mpc.rti.moving_plan import Plan
from mbcasadi.mpc.rti.stages import RtiStages

TICK_ROUNDING = 1e-6
"""Share of a tick by which the length of a plan may be short of a number of ticks."""


def planned_motion(problem: RtiStages) -> ca.Function:
    """Return (q, v, ref, z, z_next, u) → (x, u): the plan of a tick with these outputs.

    Samples are one tick apart, also where the intervals are not.
    """
    memory, moves = problem.memory, problem.shift and problem.memory.moving is None
    inputs, guess, (X, U) = _plan_of_tick(memory, problem.z0, 0 if moves else 1)
    if memory.moving is not None:
        nodes = memory.moving.nodes(guess.P)
        X, U = _at_ticks(Plan(problem.ocp, nodes, X, U), memory.moving.tick)
    plan = [ca.densify(block) for block in (X, U)]
    twice = {"allow_duplicate_io_names": True}  # u is input and output
    return ca.Function("prediction", [*inputs.values()], plan, [*inputs], ["x", "u"], twice)


def plan_at_samples(iteration: RealTimeIteration) -> ca.Function:
    """Return (q, v, ref, z, z_next, u) → (x, u, lengths): the plan of a tick at its own samples.

    Args:
        iteration: of a problem whose intervals have given lengths.
    """
    memory = iteration.memory
    assert memory.moving is not None
    inputs, guess, plan = _plan_of_tick(memory, iteration.controller.z0, 1)
    outputs = [ca.densify(block) for block in (*plan, memory.moving.lengths(guess.P))]
    names, twice = ["x", "u", "lengths"], {"allow_duplicate_io_names": True}
    return ca.Function("plan", [*inputs.values()], outputs, [*inputs], names, twice)


def _plan_of_tick(
    memory: GuessMemory, z0: Array, first_sample: int
) -> tuple[dict[str, ca.MX], Guess, tuple[ca.MX, ca.MX]]:
    """Return symbols of inputs, z_next and u; the guess of the tick; X and U that it has planned.

    Args:
        memory: the layout of z.
        z0: the first one.
        first_sample: of z_next that belongs to the second one of the tick, less one.
    """
    ocp, inputs = memory.ocp, memory.inputs()
    N, guess = ocp.horizon, memory.guess(inputs, z0)
    x0, _ = memory.start(inputs, guess)
    u, z_next = ca.MX.sym("u", ocp.nu), ca.MX.sym("z_next", sum(memory.sizes))
    contents = memory.split(z_next)
    X = ca.horzcat(x0, contents.X[:, first_sample : first_sample + N])
    U = ca.horzcat(u, contents.U[:, first_sample : first_sample + N - 1])
    return inputs | {"z_next": z_next, "u": u}, guess, (X, U)


def _at_ticks(plan: Plan, tick: float) -> tuple[ca.MX, ca.MX]:
    """Return states and controls of a plan, one tick apart over its nominal length."""
    count = max(1, int(plan.ocp.times[-1] / tick + TICK_ROUNDING))
    times = tick * np.arange(count + 1)
    return plan.states(ca.MX(times)), plan.controls(ca.MX(times[:-1] + tick / 2))
