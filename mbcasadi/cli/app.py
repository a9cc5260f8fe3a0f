"""All commands, under one name."""

import typer

from mbcasadi.cli import (
    bench_command,
    cache_command,
    campaign_command,
    model_commands,
    run_commands,
    suites,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Models and controllers of constrained mechanisms: CasADi, C, validation.",
)
for command in (
    run_commands.demo,
    model_commands.inspect,
    model_commands.check,
    run_commands.export,
    run_commands.validate,
    campaign_command.campaign,
):
    app.command()(command)
app.command(help=f"Run benchmarks side by side with their peers. Suites: {suites.suite_list()}.")(
    bench_command.bench
)
app.add_typer(cache_command.app, name="cache")
