"""The safe output of inverse dynamics: see `control/safe_output/safe_output.py`."""

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.inputs import guard_inputs, nominal_inputs
from mbcasadi.control.inverse_dynamics.options import Array, Setup
from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.scales import ProblemScales
from mbcasadi.control.safe_output.holding_command import HoldingCommand, holding_command
from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.control.safe_output.static_load import carrying
from mbcasadi.control.tick.instant import Instant
from mbcasadi.system.coordinates import initial_pose, moving_size, pose_inputs

FALLBACK_INPUTS = ("q", "v", "ref", "mask")
"""Inputs of a law in place of the safe output."""


def offered_hold(
    setup: Setup, at: Instant, problem: Problem, scales: ProblemScales
) -> dict[str, ca.SX]:
    """Return the command that holds the pose of a tick; contacts that are on carry load.

    Its parts are by name; there are none where the safe output remembers nothing.
    """
    if not setup.safe_output_size:
        return {}
    first = len(scales.rows) - problem.contacts.J.shape[0]
    rows = carrying(scales.rows**-2.0, np.arange(len(scales.rows)) >= first)
    hold = holding_command(
        setup.system,
        setup.ranges,
        setup.period,
        (at.q, at.v),
        (problem.dynamics.G, rows),
        scales.actuators**-2.0,
    )
    return {"hold.load": hold.load, "hold.own": hold.own}


def safe_output_of(
    setup: Setup,
    symbols: dict[str, ca.SX],
    hold: dict[str, ca.SX],
    no_force: ca.SX,
    limits: tuple[Array, Array],
) -> SafeOutput:
    """Return the safe output of a controller.

    Args:
        setup: the options.
        symbols: inputs of the controller, by name.
        hold: `offered_hold` of these symbols.
        no_force: (nu,) control of zero actuator force, of these symbols.
        limits: (nu,) each, that the control never leaves.
    """
    column = ca.vertcat(no_force, ca.SX.zeros(setup.system.nu))
    if hold:
        column = ca.vertcat(hold["hold.load"], hold["hold.own"])
    pose = pose_inputs(setup.system, initial_pose(setup.system))
    nominal = nominal_inputs(setup) | {name: ca.DM(value) for name, value in pose.items()}
    if setup.fallback_law is not None:
        command = setup.fallback_law(*(nominal[name] for name in FALLBACK_INPUTS))
        column = ca.vertcat(command, ca.SX.zeros(setup.system.nu))
    inputs = {name: x for name, x in symbols.items() if name != "z" or setup.memory_size}
    at = ca.Function("start", list(inputs.values()), [column], list(inputs), ["start"])
    start = at(**{name: nominal[name] for name in inputs})["start"]
    return SafeOutput.of(setup.system, setup.safe_output_kind, limits, start, setup.period)


def offered_output(
    setup: Setup,
    known: dict[str, ca.SX],
    inputs: dict[str, ca.SX],
    no_force: ca.SX,
) -> tuple[ca.SX, ca.SX]:
    """Return what a tick offers to `SafeOutput.step`, and whether its measurement is accepted.

    Args:
        setup: the options.
        known: carried numbers.
        inputs: of the controller.
        no_force: (nu,) control of zero actuator force.
    """
    if setup.safe_output_kind == "safe":
        hold = HoldingCommand(known["hold.load"], known["hold.own"])
        return ca.vertcat(*hold), known["measured"]
    if setup.fallback_law is not None:
        at, _ = guard_inputs(setup, inputs)
        pose = at.q[: moving_size(setup.system), 0]
        return ca.densify(setup.fallback_law(pose, at.v, at.ref, at.on)), at.accepted
    return no_force, known["measured"]
