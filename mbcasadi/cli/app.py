"""All commands, under one name."""

import typer

from mbcasadi.cli import benching, models, runs, suites

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Models and controllers of constrained mechanisms: CasADi from MuJoCo, C, and a judge.",
)
for command in (
    runs.demo,
    models.inspect,
    models.check,
    runs.export,
    runs.validate,
    runs.campaign,
):
    app.command()(command)
app.command(help=f"Run benchmarks side by side with their peers. Suites: {suites.listed()}.")(
    benching.bench
)
