"""The monitor of a controller as compiled C.

CasADi evaluates a Function 10 to 30 times more slowly than its C, and the monitor of inverse
dynamics solves the QP again: in long runs it takes more time than the controller and the plant.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np

from mbcasadi.codegen import CProject, export_c
from mbcasadi.description import Controller, Signal
from mbcasadi.description.qp_stages import LeastDistanceStages
from mbcasadi.errors import ExportError
from mbcasadi.qp.solver import controller_fun
from mbcasadi.validation.closed_loop.compiled_law import FAST_FLAGS, CompiledLaw, FastLaw
from mbcasadi.validation.closed_loop.runnable import Runnable

LEAST_TICKS = 6_000
"""Of a run from which on a monitor that solves a QP is sooner done in C, compilation included."""
FLAGS = FAST_FLAGS


def export_monitor(controller: Controller, folder: Path) -> CProject | None:
    """Export the monitor to a folder; return None where there is none, or no generated C."""
    exported = _exported(controller)
    if exported is None:
        return None
    try:
        return export_c(exported, folder, name=_name(controller))
    except ExportError:
        return None  # it calls a solver without generated C: CasADi evaluates it


def with_monitor(
    law: Runnable, project: CProject, flags: tuple[str, ...] | None = None
) -> Runnable:
    """Return a law of ours whose monitor is this export, compiled; other laws as they are."""
    if not isinstance(law, (CompiledLaw, FastLaw)):
        return law
    monitor = law.controller.monitor
    assert monitor is not None  # it was exported
    compiled, names = project.load(flags=flags), monitor.name_out()
    inputs = {name: ca.MX.sym(name, compiled.sparsity_in(name)) for name in compiled.name_in()}
    outputs = compiled(**inputs)
    selected = [outputs[name] for name in names]
    compiled = ca.Function("monitor", [*inputs.values()], selected, [*inputs], names)
    return replace(law, controller=replace(law.controller, monitor=compiled))


@contextmanager
def quick_monitor(
    law: Runnable, ticks: int, progress: Callable[[str], None] | None = None
) -> Iterator[Runnable]:
    """Yield a law whose monitor is compiled, where that pays in a run of so many ticks.

    Args:
        law: as it runs.
        ticks: of the run.
        progress: called with what is being done.
    """
    stages = law.controller.monitor_stages
    if ticks < LEAST_TICKS or stages is None or not isinstance(law, CompiledLaw):
        yield law
        return
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        if progress:
            progress("compiling what the report needs of each tick")
        project = export_monitor(law.controller, Path(folder) / "c")
        yield law if project is None else with_monitor(law, project, FLAGS)


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
