"""Commands on files of controllers: `schema`."""

import json

import typer

from mbcasadi.cli import console


@console.handle_errors
def schema() -> None:
    """Print the JSON schema of a controller's file, by which editors complete and check it.

    Write it beside the file, `mbcasadi schema > spec.schema.json`; the first line of the file names
    it: `#:schema ./spec.schema.json`.
    """
    from mbcasadi.validation.spec import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
