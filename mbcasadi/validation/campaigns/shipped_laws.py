"""Outer laws and reactions of a campaign, as data that another process can be sent."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.validation.campaigns.installed_code import Files, install_code, read_files
from mbcasadi.validation.campaigns.sampled_signals import SampledSignal, sample_signal
from mbcasadi.validation.closed_loop import CompiledLaw, OuterLaw, Reaction

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ShippedReaction:
    """A reaction: its export, and its initial state."""

    code: Files
    z0: Array

    def load(self) -> Reaction:
        """Return it, compiled on this machine."""
        return Reaction(install_code(self.code), self.z0)


@dataclass(frozen=True)
class ShippedPlanner:
    """The `Planner` of an outer law."""

    function: ca.Function
    z0: Array
    u0: Array
    every: int
    delay: int


@dataclass(frozen=True)
class ShippedOuterLaw:
    """An outer law, its planner and its command."""

    controller: Controller
    code: Files
    planner: ShippedPlanner
    planner_code: Files
    command: Array | SampledSignal

    def load(self) -> OuterLaw:
        """Return it, compiled on this machine."""
        project = install_code(self.code)
        law = CompiledLaw(self.controller, project.load(), project)
        return OuterLaw(law, self.planner, install_code(self.planner_code), self.command)


def ship_reaction(reaction: Reaction | None) -> ShippedReaction | None:
    """Return a reaction as data."""
    if reaction is None:
        return None
    return ShippedReaction(read_files(reaction.project), reaction.z0)


def ship_outer_law(outer: OuterLaw | None, period: float, ticks: int) -> ShippedOuterLaw | None:
    """Return an outer law as data; its command is sampled at the ticks of the inner law."""
    if outer is None:
        return None
    planner = outer.planner
    command = sample_signal(outer.command, period, ticks)
    assert command is not None  # an outer law has a command
    return ShippedOuterLaw(
        controller=sendable(outer.law.controller, monitor=False),
        code=read_files(outer.law.project),
        planner=ShippedPlanner(
            _signature(planner.function),
            planner.z0,
            planner.u0,
            planner.every,
            planner.delay,
        ),
        planner_code=read_files(outer.project),
        command=command,
    )


def sendable(controller: Controller, *, monitor: bool) -> Controller:
    """Return a controller without what only code generation needs, as another process takes it.

    CasADi cannot send some solvers. The law is sent as C, so only the names and sizes of its
    Function are kept here, and those of a monitor that is sent as C too.

    Args:
        controller: the original.
        monitor: keep the Function of the monitor.
    """
    kept = controller.monitor if monitor or controller.monitor is None else None
    if kept is None and controller.monitor is not None:
        kept = _signature(controller.monitor)
    return replace(
        controller,
        function=_signature(controller.function),
        monitor=kept,
        stages=None,
        emergency=None,
        monitor_stages=None,
    )


def _signature(function: ca.Function) -> ca.Function:
    """Return a Function of zeros with the same inputs and outputs."""
    names_in, names_out = function.name_in(), function.name_out()
    inputs = [ca.SX.sym(name, function.sparsity_in(name)) for name in names_in]
    outputs = [ca.SX(function.sparsity_out(name)) for name in names_out]
    return ca.Function(function.name(), inputs, outputs, names_in, names_out)
