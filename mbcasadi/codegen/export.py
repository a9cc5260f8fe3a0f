"""From a controller to a folder of C."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.c_interface import CLaw, Solver
from mbcasadi.codegen.callers.cpp_header import header_hpp
from mbcasadi.codegen.callers.fmu import fmu_archive
from mbcasadi.codegen.callers.mujoco_plugin import mujoco_entry, plugin_files
from mbcasadi.codegen.controller import controller_c
from mbcasadi.codegen.count import operations
from mbcasadi.codegen.example_run import ExampleRun, example_inputs, example_run
from mbcasadi.codegen.external import external_c
from mbcasadi.codegen.folder import MANIFEST, require_free, write_folder
from mbcasadi.codegen.folder_pages import cmake_lists, main_c, readme
from mbcasadi.codegen.header import header_h
from mbcasadi.codegen.law_of_controller import law_from_controller, law_from_function
from mbcasadi.codegen.manifest import DaqpOrigin, manifest, manifest_text
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.project import CProject
from mbcasadi.codegen.solver_c import wheel_files
from mbcasadi.codegen.supervision.layout import supervision_entry
from mbcasadi.codegen.supervision.plan import Plan, plan_supervision
from mbcasadi.codegen.supervision.supervised_c import supervision_files
from mbcasadi.codegen.supervision.supervision import Supervision
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController, HasExample
from mbcasadi.progress import logged_time, notes_to

_log = logging.getLogger(__name__)


@checked
def export_c(
    controller: Controller | HasController | ca.Function,
    folder: str | Path,
    *,
    name: str | None = None,
    overwrite: bool = False,
    discard_changes: bool = False,
    example: Mapping[str, ArrayLike] | None = None,
    solver: Solver = "mbcasadi",
    real: Real = "double",
    daqp: DaqpOrigin = "wheel",
    mujoco_plugin: bool = False,
    fmu: bool = False,
    supervision: Supervision | None = None,
    progress: Callable[[str], None] | None = None,
) -> CProject:
    """Write a controller, or any CasADi Function with generated C, as a folder of C99.

    The folder holds `<name>.c`, `<name>.h`, `<name>.hpp` for C++, an example, build files, a
    README and a manifest; the same input gives the same bytes. The control function allocates
    nothing, prints nothing and keeps all its memory in a block that the caller provides.

    Args:
        controller: a `Controller`, an object with one as `.controller`, or a `ca.Function`.
        folder: created if it does not exist; written completely or not at all.
        name: prefix of the C symbols; the controller's own name by default.
        overwrite: replace the folder of an earlier export: the files that its manifest lists,
            unchanged, and the products of builds.
        discard_changes: with `overwrite`, also delete changed files of an earlier export, and
            files of others in its folder.
        example: inputs from which the example program starts, by name; the others are those of
            the controller's author (a keyframe or the initial pose at rest, the reference that
            holds it), then z0 and defaults, then zeros.
        solver: of the QP, if the controller solves one: "mbcasadi" is part of the C, "daqp" needs
            DAQP's library.
        real: type of all numbers. "float" computes nothing in double: for processors whose unit
            has single precision only. Tolerances are then those of float.
        daqp: where that library comes from: "wheel" copies the one for this machine into the
            export, "system" expects it at build time.
        mujoco_plugin: also write an engine plugin of MuJoCo, `<name>_mujoco.c`, and its declaration
            in MJCF, `<name>_mujoco.xml`, with the inputs of `example` as defaults.
        fmu: also write a co-simulation unit of FMI 3.0, `<name>.fmu`, with the binary that the
            compiler makes here, where there is one.
        supervision: also write `<name>_supervised.c` and `.h`: the controller with checks of its
            inputs, limits of rate, a watchdog, changes without a jump and a log of ticks.
        progress: called with one line for each step.

    Returns:
        The folder as an object that builds, loads and times it.

    Raises:
        ExportError: illegal name, parts that do not fit, no generated C, folder not writable, or
            with files that would be lost; a law that a plugin or a co-simulation unit cannot call,
            or that cannot be supervised.
        UnknownNameError, ShapeError, ProblemError: example or supervision do not fit the law.
        CompilerError: the compiler failed on the binary of a co-simulation unit.
    """
    report = notes_to(progress)
    target = Path(folder).absolute()
    require_free(target, overwrite=overwrite, discard_changes=discard_changes)
    law = _law(controller, name, solver, real)
    count = sum(operations(f) for f in law.of_a_tick)
    report(f"{law.name}: generating C for {count} operations")
    given = start_of(controller, law) | dict(example or {})
    with logged_time(_log, "generating C of '%s'", law.name):
        source = controller_c(law)
    function, start = _function(controller), example_inputs(law.inputs, law.defaults, given)
    plan = None if supervision is None else plan_supervision(supervision, law, function, start)
    run = example_run(law, function, start, count)
    contents = _contents(law, source, run, given, daqp, plan, mujoco_plugin=mujoco_plugin, fmu=fmu)
    if fmu:
        contents[f"{law.name}.fmu"] = fmu_archive(law, contents, given, report)
    contents[MANIFEST] = _manifest(law, daqp, contents, plan, mujoco_plugin=mujoco_plugin)
    lines = contents[f"{law.name}.c"].count(b"\n")
    write_folder(target, contents, overwrite=overwrite, discard_changes=discard_changes)
    report(f"{law.name}: {lines} lines of C in {target}")
    return CProject(target, law.name, json.loads(contents[MANIFEST]), progress)


def _law(
    controller: Controller | HasController | ca.Function,
    name: str | None,
    solver: Solver,
    real: Real,
) -> CLaw:
    if isinstance(controller, ca.Function):
        return law_from_function(controller, name, real)
    if isinstance(controller, Controller):
        return law_from_controller(controller, name, solver, real)
    return law_from_controller(controller.controller, name, solver, real)


def _function(controller: Controller | HasController | ca.Function) -> ca.Function:
    """Return the whole law as one Function."""
    if isinstance(controller, ca.Function):
        return controller
    data = controller if isinstance(controller, Controller) else controller.controller
    return data.function


def start_of(controller: object, law: CLaw) -> dict[str, ArrayLike]:
    """Return the inputs from which the controller's author lets an example start."""
    inputs = controller.example_inputs() if isinstance(controller, HasExample) else {}
    names = [port.name for port in law.inputs]
    return {name: value for name, value in inputs.items() if name in names}


def _contents(
    law: CLaw,
    source: str,
    run: ExampleRun,
    example: Mapping[str, ArrayLike],
    daqp: DaqpOrigin,
    plan: Plan | None,
    *,
    mujoco_plugin: bool,
    fmu: bool,
) -> dict[str, bytes]:
    texts = {
        f"{law.name}.c": source,
        f"{law.name}.h": header_h(law),
        f"{law.name}.hpp": header_hpp(law),
        f"{law.name}_external.c": external_c(law),
        "main.c": main_c(law, run),
        "CMakeLists.txt": cmake_lists(law, daqp, supervised=plan is not None),
        "README.md": readme(
            law, daqp, mujoco_plugin=mujoco_plugin, fmu=fmu, supervised=plan is not None
        ),
    }
    if mujoco_plugin:
        texts |= plugin_files(law, example)
    contents = {file: text.encode() for file, text in texts.items()}
    if plan is not None:
        contents |= supervision_files(plan, contents)
    if law.has_daqp and daqp == "wheel":
        contents |= wheel_files()
    return contents


def _manifest(
    law: CLaw,
    daqp: DaqpOrigin,
    contents: Mapping[str, bytes],
    plan: Plan | None,
    *,
    mujoco_plugin: bool,
) -> bytes:
    content = manifest(law, daqp, contents)
    if mujoco_plugin:
        content["mujoco"] = mujoco_entry(law)
    if plan is not None:
        content["supervision"] = supervision_entry(plan, contents)
    return manifest_text(content).encode()
