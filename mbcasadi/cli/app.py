"""All commands, under one name."""

from importlib.metadata import version
from typing import Annotated

import typer

from mbcasadi.cli import (
    bench_command,
    cache_command,
    campaign_command,
    example_command,
    margin_command,
    model_commands,
    replay_command,
    run_commands,
    spec_commands,
    suites,
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


app.command(help=f"Run benchmarks side by side with their peers. Suites: {suites.suite_list()}.")(
    bench_command.bench
)
app.add_typer(cache_command.app, name="cache")
