"""The command `example`."""

from pathlib import Path
from typing import Annotated

import typer

from mbcasadi.cli import console
from mbcasadi.cli.options import AsJson
from mbcasadi.errors import ProblemError


@console.handle_errors
def example(
    name: Annotated[
        str | None, typer.Argument(help="Number, name, or its beginning; none lists all.")
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="Of the program: of most the PNG file for their figure."),
    ] = None,
    copy: Annotated[
        Path | None,
        typer.Option(help="Write the program into this folder, to be edited, and do not run it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the examples, run one, or copy one."""
    from mbcasadi.cli import example_files as files

    if name is None:
        if copy is not None:
            raise ProblemError("--copy needs the name of an example; `mbcasadi example` lists them")
        _print_list(as_json)
        return
    chosen = files.find_example(name)
    if copy is None:
        files.run_example(chosen, arguments or ())
        return
    written = [str(path) for path in files.copy_example(chosen, copy)]
    if as_json:
        console.emit_json({"files": written})
    else:
        typer.echo(f"{', '.join(written)}: run it with: python {written[0]}")


def _print_list(as_json: bool) -> None:
    """Print number, name and first line of each example."""
    from mbcasadi.cli import example_files as files

    examples = files.all_examples()
    if as_json:
        listed = [each._asdict() | {"path": str(each.path)} for each in examples]
        console.emit_json({"examples": listed})
        return
    rows = [(each.number, each.name, each.summary) for each in examples]
    columns = (">", "example", "what it shows")
    console.stdout().print(console.table("Examples: mbcasadi example NAME", columns, rows))
