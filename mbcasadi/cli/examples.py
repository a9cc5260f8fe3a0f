"""The command `example`: the programs of the package, and the files that each of them needs."""

import ast
import inspect
import re
import runpy
import sys
from collections.abc import Sequence
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

import mbcasadi
from mbcasadi.cli import console
from mbcasadi.cli.console import JsonOnly
from mbcasadi.cli.options import command
from mbcasadi.errors import ProblemError
from mbcasadi.unknown_names import unknown_name

_PACKAGE = Path(mbcasadi.__file__).resolve().parent
_IN_WHEEL = _PACKAGE / "examples"
FOLDER = _IN_WHEEL if _IN_WHEEL.is_dir() else _PACKAGE.parent / "examples"
"""A wheel holds the examples inside the package; an editable install reads the repository's."""


class Example(NamedTuple):
    """One program: `20_lqr_pendulum.py` has the number 20 and the name `lqr_pendulum`."""

    number: int
    name: str
    summary: str
    path: Path


def all_examples() -> tuple[Example, ...]:
    """Return the examples by their numbers; the summary is the first line of the program."""
    found = []
    for path in FOLDER.glob("[0-9][0-9]_*.py"):
        number, _, name = path.stem.partition("_")
        documentation = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found.append(Example(int(number), name, documentation.partition("\n")[0], path))
    return tuple(sorted(found))


def find_example(name: str) -> Example:
    """Return the example of a number, a name, or the beginning of one.

    Raises:
        UnknownNameError: there is none; the message lists the names and a close one.
        ProblemError: several names begin like this; the message lists them.
    """
    examples = all_examples()
    wanted = re.sub(r"^\d+_", "", name.removesuffix(".py"))
    if wanted.isdecimal():
        matches = [each for each in examples if each.number == int(wanted)]
    else:
        matches = [each for each in examples if each.name == wanted]
        matches = matches or [each for each in examples if wanted and each.name.startswith(wanted)]
    if not matches:
        raise unknown_name("example", name, [each.name for each in examples])
    if len(matches) > 1:
        names = ", ".join(each.name for each in matches)
        raise ProblemError(f"{name!r} is the beginning of several examples: {names}")
    return matches[0]


def needed_files(path: Path) -> tuple[Path, ...]:
    """Return the program and the files of the folder that it imports, directly or not."""
    finder = ModuleFinder([str(FOLDER)])
    finder.run_script(str(path))
    known = (getattr(each, "__file__", None) for each in finder.modules.values())
    files = {Path(file) for file in known if file}
    return (path, *sorted(files - {path}))


def copy_example(example: Example, folder: Path) -> tuple[Path, ...]:
    """Write an example and what it imports to a folder, and return the new files.

    Raises:
        ProblemError: one of the files exists.
    """
    sources = needed_files(example.path)
    targets = {source: folder / source.relative_to(FOLDER) for source in sources}
    for target in targets.values():
        if target.exists():
            raise ProblemError(f"{target} exists; give another folder to --copy")
    for source, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    return tuple(targets.values())


def run_example(example: Example, arguments: Sequence[str] = ()) -> None:
    """Run an example as `python FILE ARGUMENT...` does.

    Raises:
        ProblemError: it does not take as many arguments; the message names those that it takes.
    """
    path = list(sys.path)
    sys.path.insert(0, str(FOLDER))
    try:
        main = runpy.run_path(str(example.path))["main"]
        _require_arguments(example, main, arguments)
        main(*arguments)
    finally:
        sys.path[:] = path


def _require_arguments(example: Example, main: object, arguments: Sequence[str]) -> None:
    """Raise unless `main` takes that many arguments."""
    kinds = inspect.signature(main).parameters.values()  # type: ignore[arg-type]
    names = [each.name for each in kinds if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(arguments) > len(names):
        raise ProblemError(
            f"arguments that example {example.name!r} takes: {', '.join(names) or 'none'}; "
            f"got {len(arguments)}"
        )


@command
def example(
    output: JsonOnly,
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
) -> None:
    """List the examples, run one, or copy one."""
    if name is None:
        if copy is not None:
            raise ProblemError("--copy needs the name of an example; `mbcasadi example` lists them")
        _print_list(output.as_json)
        return
    chosen = find_example(name)
    if copy is None:
        run_example(chosen, arguments or ())
        return
    written = [str(path) for path in copy_example(chosen, copy)]
    if output.as_json:
        console.emit_json({"files": written})
    else:
        typer.echo(f"{', '.join(written)}: run it with: python {written[0]}")


def _print_list(as_json: bool) -> None:
    """Print number, name and first line of each example."""
    examples = all_examples()
    if as_json:
        listed = [each._asdict() | {"path": str(each.path)} for each in examples]
        console.emit_json({"examples": listed})
        return
    rows = [(each.number, each.name, each.summary) for each in examples]
    columns = (">", "example", "what it shows")
    console.stdout().print(console.table("Examples: mbcasadi example NAME", columns, rows))
