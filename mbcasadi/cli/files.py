"""Commands on files: `init`, `schema` and `export` of controllers, `replay` of logs, the cache."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mbcasadi.cli import console
from mbcasadi.cli.console import JsonOnly, Output, Saved, finish
from mbcasadi.cli.options import (
    ControllerFile,
    Model,
    command,
    find_model,
    parse_direction,
    record_of,
)
from mbcasadi.errors import ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.codegen import CProject, LogReplay
    from mbcasadi.codegen.two_rates.project import TwoRatesProject
    from mbcasadi.progress import Progress
    from mbcasadi.validation.spec import Experiment, Spec

cache = typer.Typer(no_args_is_help=True, help="What was generated and compiled before.")


Moves = record_of(
    ("validation.spec.motion_options.MotionOptions", ("speed", "turn", "radius", "frequency"))
)


@command
def init(
    model: Model,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write; spec.toml or controller.py by default."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the file.")] = False,
    task: Annotated[
        str | None,
        typer.Option(
            help="What the robot is to do: hold, stand, squat, lift, trot, walk, track, reach, "
            "carry, grasp, hover, drive; by default what suits its kind."
        ),
    ] = None,
    moves: Annotated[Any, Moves],
    ahead: Annotated[
        str | None,
        typer.Option(
            help="Where it looks, of its base's axes: +x, -x, +y, -y, +z, -z, or three numbers, "
            "such as 1,1,0; by default what its feet and limbs say, else x of the world."
        ),
    ] = None,
    python: Annotated[
        bool, typer.Option("--python", help="Write a script in place of the TOML file.")
    ] = False,
    mpc: Annotated[
        bool, typer.Option("--mpc", help="Whole-body MPC: a robot with legs trots or walks.")
    ] = False,
) -> None:
    """Write a commented file of a controller for a model: what suits its kind of robot.

    It reads limbs, feet, tools, actuators, key frames and frames from the model and proposes gains;
    `mbcasadi validate MODEL --controller FILE` runs it. With `--python` it is a script of the same
    controller, which validates and exports it: `python controller.py`.
    """
    from mbcasadi.validation.spec import MotionOptions, propose_spec

    path = find_model(model)
    out = out or Path("controller.py" if python else "spec.toml")
    if out.exists() and not overwrite:
        raise ProblemError(f"{out} exists; give another --out, or --overwrite")
    text = propose_spec(
        path,
        task=task,
        motion=MotionOptions(**vars(moves)),
        ahead=None if ahead is None else parse_direction(ahead),
        warn=lambda warning: typer.echo(f"warning: {warning}", err=True),
        python=python,
        mpc=mpc,
    )
    out.write_text(text, encoding="utf-8")
    runs = f"python {out}" if python else f"mbcasadi validate {model} --controller {out}"
    typer.echo(f"{out}: run it with: {runs}")


@command
def schema() -> None:
    """Print the JSON schema of a controller's file, by which editors complete and check it.

    Write it beside the file, `mbcasadi schema > spec.schema.json`; the first line of the file names
    it: `#:schema ./spec.schema.json`.
    """
    from mbcasadi.validation.spec import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


EXPORTED = ("overwrite", "discard_changes", "mujoco_plugin", "fmu")
Exported = record_of(("codegen.export.export_c", EXPORTED))


@command
def export(
    model: Model,
    file: ControllerFile,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    exported: Annotated[Any, Exported],
    output: Output,
) -> None:
    """Generate a controller's C for a model, and compile it.

    A reference that moves is a Function of time in a folder of its own, OUT_reference. Walking has
    three laws: OUT, OUT_mpc and OUT_planner; a plugin, a co-simulation unit and the supervision of
    the file are of the first. Whole-body MPC is one folder with two functions, a plan and a tick.
    The law is the one that `validate` runs: for the delay of the file's trial. The example programs
    run them at the file's start.
    """
    from mbcasadi.validation.spec import build_exported

    path, spec = find_model(model), file.read()
    with console.progress(output.quiet) as progress:
        progress("building the controller", 0.0)
        experiment = build_exported(spec, path)
        projects = _one_folder if experiment.two_rates else _folders
        done = []
        for project in projects(experiment, spec, out, vars(exported), progress):
            progress("compiling", 0.6)
            done.append(_built(project))
    lines = []
    for part in done:
        compiled = part["note"] or f"compiled in {part['compile_seconds']:.1f} s"
        sizes = f"{part['operations']} operations, {part['lines']} lines of C"
        lines += [f"{part['name']}: {sizes}, {compiled}", str(part["folder"])]
    finish(output, lambda: done[0] | ({"further": done[1:]} if done[1:] else {}), lines)


def _folders(
    experiment: "Experiment", spec: "Spec", out: Path, options: dict[str, Any], progress: "Progress"
) -> "Iterator[CProject]":
    """Export each law of an experiment, and yield its project."""
    from mbcasadi.codegen import export_c
    from mbcasadi.validation.spec import example_inputs

    examples = example_inputs(experiment)
    own = options | {"supervision": spec.supervision}
    for suffix, law in experiment.all_laws.items():
        folder = out.with_name(out.name + suffix)
        yield export_c(
            law, folder, example=examples[suffix], progress=lambda text: progress(text, 0.3), **own
        )
        own |= {"mujoco_plugin": False, "fmu": False, "supervision": None}


def _one_folder(
    experiment: "Experiment", spec: "Spec", out: Path, options: dict[str, Any], progress: "Progress"
) -> "Iterator[TwoRatesProject]":
    """Export a plan and the law that follows it, and yield their project."""
    from mbcasadi.codegen import export_two_rates

    if options["fmu"]:
        raise ProblemError("--fmu: plans and ticks are no co-simulation unit; leave it out")
    own = {name: value for name, value in options.items() if name != "fmu"}
    assert experiment.outer is not None
    assert experiment.two_rates is not None
    example = {"command": experiment.outer.at_start}
    example |= {} if experiment.sensors else {"q": experiment.q0}
    yield export_two_rates(
        experiment.two_rates,
        out,
        example=example,
        supervision=spec.supervision,
        progress=lambda text: progress(text, 0.3),
        **own,
    )


def _built(project: "CProject | TwoRatesProject") -> dict[str, Any]:
    """Compile a project, and return what was made."""
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


@command
def replay(
    folder: Annotated[Path, typer.Argument(help="Export with supervision whose C wrote the log.")],
    log: Annotated[Path, typer.Argument(help="File of the log's memory.")],
    output: Saved,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Of u, as a share of its largest value; 0: bit for bit. By default 0 where "
            "compiler and processor are those of the log.",
        ),
    ] = None,
    library: Annotated[
        Path | None, typer.Option(help="Compiled library to use; built here by default.")
    ] = None,
) -> None:
    """Compute the ticks of a supervised controller's log again, and compare.

    The exit status is 0 only if every tick is as it was.
    """
    from mbcasadi.codegen import open_project, open_two_rates
    from mbcasadi.codegen.two_rates.project import is_two_rates

    with console.progress(output.quiet) as progress:
        open_export = open_two_rates if is_two_rates(folder) else open_project
        project = open_export(folder, progress=lambda text: progress(text, 0.3))
        result = project.replay(log, tolerance=tolerance, library=library)
        if output.report is not None:
            from mbcasadi.validation.report.replay_page import save_replay

            progress("writing the report", 0.9)
            save_replay(result, output.report, f"{project.name}: {log.name}")
    finish(output, result.to_dict, _replay_items(result), result.passed)


def _replay_items(result: "LogReplay") -> Iterator[str | Table]:
    """Yield what is printed of the events and the result."""
    from mbcasadi.validation.report.replay_page import MOST_ROWS, event_changes

    changes = list(event_changes(result))
    columns = ("tick>", "t / s>", "events from here on", "first fault")
    if changes:
        yield console.table(f"{result.log.ticks.size} ticks", columns, changes[:MOST_ROWS])
    if len(changes) > MOST_ROWS:
        yield f"and {len(changes) - MOST_ROWS} more"
    if result.interruptions:
        yield f"{result.interruptions} starts, resets or gaps"
    if result.log.torn:
        yield f"records that are not whole, left out: {result.log.torn}"
    yield result.sentence()


@cache.command()
@command
def info(output: JsonOnly) -> None:
    """Print folder, number of entries and size of the cache."""
    from mbcasadi.codegen import cache as kept

    state = kept.info()
    folder = None if state.folder is None else str(state.folder)
    sizes = {"entries": state.entries, "bytes": state.size, "limit": state.limit}
    finish(output, lambda: {"folder": folder, **sizes}, [str(state)])


@cache.command()
@command
def clear(output: JsonOnly) -> None:
    """Remove all entries of the cache."""
    from mbcasadi.codegen import cache as kept

    count = kept.clear()
    finish(output, lambda: {"removed": count}, [f"entries removed: {count}"])


@cache.command()
@command
def path() -> None:
    """Print the folder of the cache; nothing where it is switched off."""
    from mbcasadi.codegen import cache as kept

    folder = kept.folder()
    if folder is not None:
        typer.echo(str(folder))
