"""Commands that build and run controllers: `export`, `validate`, `demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mbcasadi.cli import console
from mbcasadi.cli.arguments import find_model, parse_numbers, parse_pushes, require_writable
from mbcasadi.cli.console import Progress
from mbcasadi.cli.options import (
    AllowCode,
    AsJson,
    Duration,
    Fast,
    Model,
    Perturb,
    Pushes,
    Quiet,
    Render,
    ReportFile,
    Rigid,
    SpecFile,
    VideoFile,
    Viewer,
)
from mbcasadi.cli.report_output import show_report

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    import numpy as np
    from numpy.typing import NDArray

    from mbcasadi.codegen import Supervision
    from mbcasadi.validation.spec.experiment import Exportable


@console.handle_errors
def export(
    model: Model,
    controller: SpecFile,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    overwrite: Annotated[bool, typer.Option(help="Replace an earlier export.")] = False,
    discard_changes: Annotated[
        bool, typer.Option(help="With --overwrite: also delete changed and other files there.")
    ] = False,
    mujoco_plugin: Annotated[
        bool, typer.Option(help="Also write an engine plugin of MuJoCo that runs it in mj_step.")
    ] = False,
    fmu: Annotated[bool, typer.Option(help="Also write a co-simulation unit of FMI 3.0.")] = False,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Generate a controller's C for a model, and compile it.

    Walking has three laws: OUT, OUT_mpc and OUT_planner; a plugin, a co-simulation unit and the
    file's [supervision] are of the first. The example programs run them at the file's start.
    """
    from mbcasadi.validation.spec import build_experiment, example_inputs, read_spec

    path, spec = find_model(model), read_spec(controller, allow_code=allow_code)
    with console.progress(quiet) as progress:
        progress("building the controller", 0.0)
        experiment = build_experiment(spec, path)
        examples = example_inputs(experiment)
        supervision = spec.supervision
        done = [
            _export(
                law,
                examples[suffix],
                out.with_name(out.name + suffix),
                overwrite=overwrite,
                discard_changes=discard_changes,
                mujoco_plugin=mujoco_plugin and not suffix,
                fmu=fmu and not suffix,
                supervision=None if suffix else supervision,
                progress=progress,
            )
            for suffix, law in experiment.all_laws.items()
        ]
    if as_json:
        console.emit_json(done[0] | ({"above": done[1:]} if done[1:] else {}))
    for part in () if as_json else done:
        screen = console.stdout()
        screen.print(  # the name is a C identifier
            f"{part['name']}: {part['operations']} operations, {part['lines']} lines of C, "
            f"{part['note'] or _seconds(part)}"
        )
        screen.print(str(part["folder"]), markup=False, soft_wrap=True)


def _seconds(part: dict[str, object]) -> str:
    return f"compiled in {part['compile_seconds']:.1f} s"


def _export(
    law: "Exportable",
    example: "dict[str, NDArray[np.float64]]",
    folder: Path,
    *,
    overwrite: bool,
    discard_changes: bool,
    mujoco_plugin: bool,
    fmu: bool,
    supervision: "Supervision | None",
    progress: Progress,
) -> dict[str, object]:
    """Export one law, compile it, and return what was made."""
    from mbcasadi.codegen import export_c

    project = export_c(
        law,
        folder,
        overwrite=overwrite,
        discard_changes=discard_changes,
        example=example,
        mujoco_plugin=mujoco_plugin,
        fmu=fmu,
        supervision=supervision,
        progress=lambda text: progress(text, 0.3),
    )
    progress("compiling", 0.6)
    build = project.build()
    return {
        "name": project.name,
        "folder": str(project.folder),
        "operations": project.operations,
        "lines": project.lines,
        "compile_seconds": build.seconds,
        "note": build.note,
        "library": str(build.path),
    }


@console.handle_errors
def validate(
    model: Model,
    controller: SpecFile,
    duration: Duration = None,
    rigid: Rigid = None,
    perturb: Perturb = None,
    push: Pushes = None,
    delay: Annotated[int | None, typer.Option(min=0, help="Ticks.")] = None,
    softness: Annotated[
        bool, typer.Option(help="Sweep solimp and solref, and report the effect of softness.")
    ] = False,
    what_if: Annotated[
        bool, typer.Option(help="Repeat without delay and errors, and report their cost.")
    ] = False,
    explain: Annotated[
        bool, typer.Option(help="Repeat a run that fails without one thing at a time.")
    ] = True,
    fast: Fast = False,
    render: Render = False,
    video: VideoFile = None,
    viewer: Viewer = False,
    report: ReportFile = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a controller's generated C against MuJoCo and judge it by its criteria."""
    from mbcasadi.validation import ReportOptions
    from mbcasadi.validation.spec import read_spec, run_spec

    spec = read_spec(controller, allow_code=allow_code).with_trial(
        duration=duration,
        rigid=rigid,
        delay=delay,
        perturb=parse_numbers(perturb),
        disturbance=parse_pushes(push),
        fast=fast or None,
    )
    if report is not None:
        require_writable(report)
    with console.progress(quiet) as progress:
        options = ReportOptions(
            softness=softness,
            what_if=what_if,
            explain=explain,
            render=render,
            video=video,
            viewer=viewer,
            progress=progress,
        )
        result = run_spec(spec, find_model(model), options)
        if report is not None:
            progress("writing the report", 1.0)
            result.save(report)
    show_report(result, report, as_json)


@console.handle_errors
def demo(
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    render: Render = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run three controllers as generated C against MuJoCo and write one report."""
    from mbcasadi.validation.demo import demo as run_demo

    require_writable(report)
    with console.progress(quiet) as progress:
        result = run_demo(render=render, progress=progress)
        progress("writing the report", 1.0)
        result.save(report)
    show_report(result, report, as_json)
