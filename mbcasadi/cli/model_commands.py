"""Commands on a model: `inspect` and `check`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mbcasadi.cli import console, tables
from mbcasadi.cli.arguments import find_model
from mbcasadi.cli.corpus_output import check_corpus_folder
from mbcasadi.cli.options import AsJson, Model, Quiet
from mbcasadi.errors import ProblemError


@console.handle_errors
def inspect(model: Model, as_json: AsJson = False) -> None:
    """Print sizes, coverage, limits, constraint ranks and operation counts of a model."""
    from mbcasadi.cli.inspection import inspect_system
    from mbcasadi.system import read_mjcf

    inspection = inspect_system(read_mjcf(find_model(model)))
    if as_json:
        console.emit_json(inspection.to_dict())
    else:
        tables.print_inspection(inspection, console.stdout())


@console.handle_errors
def check(
    model: Annotated[
        str | None, typer.Argument(help="MJCF or URDF file, or the name of a model of the package.")
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Check all models below this folder, and print what became of each."),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Largest relative error.")] = 1e-10,
    states: Annotated[
        int | None, typer.Option(min=1, help="Random states; 20, of a corpus 5, by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the random states.")] = 0,
    allow_missing: Annotated[
        list[str] | None,
        typer.Option(help="Quantity that may remain without comparison; repeatable."),
    ] = None,
    frames: Annotated[
        int | None,
        typer.Option(
            min=0, help="Named sites, and as many bodies, to compare; 6, of a corpus 2, by default."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Another model, with the same joints, in place of our equations."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes of a corpus; the cores by default.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="s, for each model of a corpus.")] = 600.0,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the report on a corpus to this .md file.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare every quantity of a model, or of all models below a folder, with MuJoCo.

    A quantity that cannot be compared, because the model has a feature without equations, fails
    the check unless it is named by --allow-missing. In a corpus a refused or unreadable model is a
    line of the table; the check fails if one is wrong.
    """
    if corpus is not None:
        if model is not None or against is not None or allow_missing:
            raise ProblemError(
                "--corpus checks a folder of models, and takes no model, --against or "
                "--allow-missing; its table names what was not compared"
            )
        check_corpus_folder(
            corpus, as_json, quiet=quiet, markdown=markdown, jobs=jobs, states=states, seed=seed,
            tolerance=tolerance, frames=frames, timeout=timeout,
        )  # fmt: skip
        return
    if model is None:
        raise ProblemError("expected a model, or --corpus FOLDER")
    if markdown is not None or jobs is not None:
        raise ProblemError("--jobs and --markdown are for --corpus FOLDER")
    states, frames = states or 20, 6 if frames is None else frames
    from mbcasadi.mjcf import load
    from mbcasadi.system import read_mjcf
    from mbcasadi.validation.agreement import agreement_with_mujoco, judge
    from mbcasadi.validation.agreement.sensor_gaps import rigid_gaps

    path = find_model(model)
    if against is not None:
        _check_against(
            path,
            find_model(str(against)),
            as_json,
            quiet=quiet,
            states=states,
            seed=seed,
            tolerance=tolerance,
            allow_missing=allow_missing or (),
            frames=frames,
        )
        return
    with console.progress(quiet) as progress:
        progress(f"reading {path.name}", 0.0)
        system = read_mjcf(path)
        progress(f"comparing at {states} states", 0.3)
        compiled = load(path)[0]
        entries = agreement_with_mujoco(system, compiled, states=states, seed=seed, frames=frames)
        gaps = rigid_gaps(system, compiled, states, seed)
    verdict = judge(entries, tolerance, allow_missing or ())
    plant_only = [item.feature for item in system.coverage.items if item.treatment == "plant only"]
    if as_json:
        rows = [entry._asdict() for entry in entries]
        settings = {"model": system.name, "tolerance": tolerance, "plant_only": plant_only}
        sensors = [gap._asdict() for gap in gaps]
        console.emit_json({**settings, **verdict._asdict(), "rows": rows, "sensor_gaps": sensors})
    else:
        console.stdout().print(tables.agreement_table(entries, tolerance))
        assert system.tree is not None  # it was read from a model
        for line in tables.frame_lines(system.tree.frames, frames):
            console.stdout().print(line, markup=False)
        for line in tables.gap_lines(gaps):
            console.stdout().print(line, markup=False)
        if plant_only:
            console.stdout().print(
                f"of MuJoCo's simulation alone, in no quantity: {', '.join(plant_only)}",
                markup=False,
            )
        for line in tables.verdict_lines(verdict):
            console.stdout().print(line, markup=False)
    console.exit_unless(verdict.passed)


def _check_against(path: Path, other: Path, as_json: bool, *, quiet: bool, **options: Any) -> None:
    """Compare two models of MuJoCo."""
    from mbcasadi.validation import compare

    with console.progress(quiet) as progress:
        progress(f"comparing {path.name} with {other.name}", 0.3)
        agreement = compare(path, other, **options)
    if as_json:
        console.emit_json(agreement.to_dict())
    else:
        console.stdout().print(str(agreement), markup=False, highlight=False, soft_wrap=True)
    console.exit_unless(agreement.agrees)
