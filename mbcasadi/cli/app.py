"""All commands, under one name."""

from importlib.metadata import version
from typing import Annotated

import typer

from mbcasadi.cli import check, console, examples, files, logs, model, trials

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (
    trials.demo,
    examples.example,
    model.inspect,
    check.check,
    files.init,
    files.export,
    files.replay,
    logs.estimate,
    trials.validate,
    trials.campaign,
    trials.margin,
    files.schema,
):
    app.command()(command)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"mbcasadi {version('mbcasadi')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Write the log on stderr, with all details.")
    ] = False,
) -> None:
    """Models and controllers of constrained mechanisms: CasADi, C, validation."""
    context.with_resource(console.details(verbose))


@app.command(hidden=True, context_settings={"ignore_unknown_options": True})
def bench(_: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Say where the benchmarks are."""
    console.fail("the benchmarks are in the source: `python -m bench` in the root of a checkout")


app.add_typer(files.cache, name="cache")
