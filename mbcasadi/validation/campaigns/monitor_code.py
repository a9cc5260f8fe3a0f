"""The monitor of a controller as C: in a campaign it would take longer than the controller itself.

CasADi evaluates a Function 10 to 30 times more slowly than its C, and that of inverse dynamics
solves the QP again.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np

from mbcasadi.codegen import export_c
from mbcasadi.description import Controller, Signal
from mbcasadi.description.qp_stages import LeastDistanceStages
from mbcasadi.errors import ExportError
from mbcasadi.qp.solver import controller_fun
from mbcasadi.validation.campaigns.installed_code import read_files


def monitor_code(controller: Controller) -> dict[str, bytes] | None:
    """Return the export of a controller's monitor; None where it has none, or no generated C."""
    exported = _exported(controller)
    if exported is None:
        return None
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        try:
            return read_files(export_c(exported, Path(folder) / "c", name=_name(controller)))
        except ExportError:
            return None  # it calls a solver without generated C: CasADi evaluates it


def _name(controller: Controller) -> str:
    return f"{controller.name}_monitor"


def _exported(controller: Controller) -> Controller | ca.Function | None:
    """Return what is exported: the monitor, or a controller that has its outputs."""
    stages = controller.monitor_stages
    if controller.monitor is None or stages is None:
        return controller.monitor
    sizes = {name: controller.function.numel_in(name) for name in controller.function.name_in()}
    if {name: pattern.numel() for name, pattern in stages.inputs.items()} != sizes:
        return controller.monitor  # the law was extended since
    return _as_controller(controller, stages)


def _as_controller(controller: Controller, stages: LeastDistanceStages) -> Controller:
    function = controller_fun(_name(controller), stages, "qrqp")
    known = {signal.name: signal for signal in (*controller.outputs, *controller.monitors)}
    sizes = {name: function.numel_out(name) for name in function.name_out()}
    unnamed = {
        name: Signal(name, tuple(f"{name}{i}" for i in range(size)), ("",) * size)
        for name, size in sizes.items()
    }
    return replace(
        controller,
        function=function,
        stages=stages,
        outputs=tuple(known.get(name, unnamed[name]) for name in sizes),
        u_min=np.zeros(0),
        u_max=np.zeros(0),
        monitor=None,
        monitors=(),
        monitor_stages=None,
        limits=None,
        emergency=None,
    )
