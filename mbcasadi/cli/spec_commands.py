"""Commands on files of controllers: `init` and `schema`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mbcasadi.cli import console
from mbcasadi.cli.arguments import find_model
from mbcasadi.cli.options import Model
from mbcasadi.errors import ProblemError


@console.handle_errors
def init(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("spec.toml"),
    overwrite: Annotated[bool, typer.Option(help="Replace the file.")] = False,
) -> None:
    """Write a commented file of a controller that holds a model where it starts.

    It reads feet, actuators, key frames and frames from the model and proposes gains;
    `mbcasadi validate MODEL --controller FILE` runs it.
    """
    from mbcasadi.validation.spec import propose_spec

    path = find_model(model)
    if out.exists() and not overwrite:
        raise ProblemError(f"{out} exists; give another --out, or --overwrite")
    text = propose_spec(path, warn=lambda warning: typer.echo(f"warning: {warning}", err=True))
    out.write_text(text, encoding="utf-8")
    typer.echo(f"{out}: run it with: mbcasadi validate {model} --controller {out}")


@console.handle_errors
def schema() -> None:
    """Print the JSON schema of a controller's file, by which editors complete and check it.

    Write it beside the file, `mbcasadi schema > spec.schema.json`; the first line of the file names
    it: `#:schema ./spec.schema.json`.
    """
    from mbcasadi.validation.spec import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
