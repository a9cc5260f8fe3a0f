"""All commands, under one name."""

from importlib.metadata import version
from typing import Annotated

import typer

from mbcasadi.cli import (
    cache_command,
    campaign_command,
    console,
    example_command,
    margin_command,
    model_commands,
    replay_command,
    run_commands,
    spec_commands,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (
    run_commands.demo,
    example_command.example,
    model_commands.inspect,
    model_commands.check,
    spec_commands.init,
    run_commands.export,
    replay_command.replay,
    run_commands.validate,
    campaign_command.campaign,
    margin_command.margin,
    spec_commands.schema,
):
    app.command()(command)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"mbcasadi {version('mbcasadi')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Models and controllers of constrained mechanisms: CasADi, C, validation."""


@app.command(hidden=True, context_settings={"ignore_unknown_options": True})
def bench(_: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Say where the benchmarks are."""
    console.fail("the benchmarks are in the source: `python -m bench` in the root of a checkout")


app.add_typer(cache_command.app, name="cache")
