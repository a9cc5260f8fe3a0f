"""The commands: each reads its arguments, calls the rooms, and prints what they answer."""

from typing import Annotated

import typer

from mbcasadi.cli import console, printing
from mbcasadi.cli.models import locate

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Constrained multibody models and controllers: CasADi from MuJoCo, C, and a judge.",
)

Model = Annotated[
    str, typer.Argument(help="MJCF or URDF file, or the name of a model of the package.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]


@app.command()
@console.reported
def inspect(model: Model, as_json: AsJson = False) -> None:
    """Print sizes, coverage, limits, constraint ranks and operation counts of a model."""
    from mbcasadi.cli.inspection import inspect_system
    from mbcasadi.system import read_mjcf

    found = inspect_system(read_mjcf(locate(model)))
    if as_json:
        console.emit_json(vars(found) | {"rank_in_words": found.rank_in_words})
    else:
        printing.inspection(found, console.screen())
