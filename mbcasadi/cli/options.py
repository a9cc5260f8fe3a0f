"""Options of commands, as records: a parameter of a command that is one is an option per field.

The conditions of a run, and what its report contains, are the fields of `Trial` and
`ReportOptions` with their docs. They are read from the source, as importing them takes long.
"""

import ast
import functools
import inspect
import os
import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

import mbcasadi
from mbcasadi import models
from mbcasadi.annotations import documented
from mbcasadi.cli import console
from mbcasadi.errors import ModelError, ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation import Push
    from mbcasadi.validation.spec import Spec

C = TypeVar("C", bound=Callable[..., None])
Numbers = dict[str, float]

Model = Annotated[
    str, typer.Argument(help="MJCF or URDF file, or the name of a model of the package.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; the cores by default.")]


def command(function: C) -> C:
    """Return a command whose errors are one line, and whose records are options.

    A record is a parameter of a dataclass, or `Annotated[Any, RECORD]` of one that is computed.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    kinds = {name: (*getattr(hint, "__metadata__", ()), hint)[0] for name, hint in hints.items()}
    records: dict[str, Any] = {name: each for name, each in kinds.items() if is_dataclass(each)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        own = [parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY)]
        parameters += _options_of(records[name]) if name in records else own

    @functools.wraps(function)
    def run(**values: Any) -> None:
        for name, kind in records.items():
            values[name] = kind(**{each.name: values.pop(each.name) for each in fields(kind)})
        function(**values)

    shown: Any = console.handle_errors(run)
    shown.__signature__ = inspect.Signature(parameters)
    shown.__annotations__ = {each.name: each.annotation for each in parameters}
    return typing.cast(C, shown)


def _options_of(kind: Any) -> list[inspect.Parameter]:
    """Return the options of a record, as parameters of a command."""
    hints = typing.get_type_hints(kind, include_extras=True)
    made = inspect.signature(kind).parameters.values()
    return [
        each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for each in made
    ]


@dataclass(frozen=True)
class JsonOnly:
    """How results are shown."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")
    ] = False


@dataclass(frozen=True)
class Output(JsonOnly):
    """How results and progress are shown."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False


@dataclass(frozen=True)
class Saved(Output):
    """Where results go, a file among them, which must be one that can be written."""

    report: Annotated[
        Path | None, typer.Option(help="Write the report to this .html or .json file.")
    ] = None

    def __post_init__(self) -> None:
        if self.report is not None:
            require_writable(self.report)


@dataclass(frozen=True)
class ControllerFile:
    """A controller's file."""

    controller: Annotated[
        Path,
        typer.Option("--controller", "-c", help="TOML file of the controller and its motion."),
    ]
    allow_code: Annotated[
        bool,
        typer.Option("--allow-code", help="Run the Python code that a file of type own names."),
    ] = False

    def read(self, conditions: Any = None) -> "Spec":
        """Return the controller, under the conditions of the command line."""
        from mbcasadi.validation.spec import read_spec

        spec = read_spec(self.controller, allow_code=self.allow_code)
        return spec if conditions is None else spec.with_trial(**given(conditions))


def record_of(source: str, names: Sequence[str], *, optional: bool = True) -> Any:
    """Return a record of options with fields of a dataclass.

    Args:
        source: `validation.trial.Trial`, module and class.
        names: of fields.
        optional: None is the default of all, in place of those of the dataclass.
    """
    module, _, kind = source.rpartition(".")
    path = Path(mbcasadi.__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    node = next(each for each in nodes if isinstance(each, ast.ClassDef) and each.name == kind)
    docs = documented(ast.get_docstring(node) or "")
    lines = {ast.unparse(x.target): x for x in node.body if isinstance(x, ast.AnnAssign)}
    options = []
    for name in names:
        value = None if optional else lines[name].value
        default = value.value if isinstance(value, ast.Constant) else None
        hint, least = KINDS[ast.unparse(lines[name].annotation)]
        text = TEXTS.get(name) or re.split(r"[.;] (?=[A-Z])", docs[name])[0].rstrip(".") + "."
        option = typer.Option(*FLAGS.get(name, ()), min=least, help=text.replace("`", ""))
        kind_of_field = hint if default is not None else hint | None
        options.append((name, Annotated[kind_of_field, option], field(default=default)))
    return make_dataclass(kind, options, frozen=True)


KINDS: dict[str, tuple[Any, float | None]] = {
    "float": (float, 0),
    "int": (int, 0),
    "bool": (bool, None),
    "str | Path | None": (Path, None),
    "Mapping[str, float]": (list[str], None),
    "Disturbance": (list[str], None),
}
"""Annotation of a field → type of its option, least value."""

TEXTS = {
    "perturb": "Error of the plant, such as mass=0.1; repeatable.",
    "disturbance": "Force on a body of the plant, BODY=FX,FY,FZ@START:STOP in N (world axes) and "
    "s, such as trunk=0,50,0@0.5:0.7; repeatable. They replace those of the file.",
}
"""What the command line writes in another way than Python."""

FLAGS = {"disturbance": ("--push",), "viewer": ("--viewer",)}


def given(record: Any) -> dict[str, Any]:
    """Return the fields of a record that the command line gives, errors and pushes as such."""
    values = {name: value for name, value in vars(record).items() if value is not None}
    for name, parse in (("perturb", parse_numbers), ("disturbance", parse_pushes)):
        if name in values:
            values[name] = parse(values[name])
    return values


CONDITIONS = ("duration", "rigid", "perturb", "disturbance", "fast")
Conditions = record_of("validation.trial.Trial", (*CONDITIONS, "delay"))
ConditionsOfAll = record_of("validation.trial.Trial", CONDITIONS)


def find_model(model: str) -> Path:
    """Return the file of `model`: a path, or the name of a model of the package.

    Raises:
        ModelError: there is neither such a file nor such a name; the message lists the names.
    """
    path = Path(model)
    if path.is_file():
        return path
    if path.parent == Path() and model.removesuffix(".xml") in models.names():
        return models.path(model)
    raise ModelError(
        f"model '{model}' not found: expected an MJCF or URDF file, or one of the models that "
        f"come with the package: {', '.join(models.names())}"
    )


def parse_numbers(texts: list[str] | None) -> dict[str, float] | None:
    """Return `["mass=0.1"]` as `{"mass": 0.1}`; None without texts.

    Raises:
        ProblemError: not of the form NAME=NUMBER.
    """
    if not texts:
        return None
    result = {}
    for text in texts:
        name, sign, number = text.partition("=")
        try:
            result[name.strip()] = float(number)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise ProblemError(f"'{text}': expected NAME=NUMBER, such as mass=0.1")
    return result


def parse_ranges(texts: list[str] | None) -> dict[str, tuple[float, float]]:
    """Return `["mass=-0.1:0.2"]` as `{"mass": (-0.1, 0.2)}`.

    Raises:
        ProblemError: not of the form NAME=LOWEST:HIGHEST.
    """
    result = {}
    for text in texts or ():
        name, _, ends = text.partition("=")
        lowest, _, highest = ends.partition(":")
        try:
            result[name.strip()] = (float(lowest), float(highest))
        except ValueError as error:
            raise ProblemError(
                f"'{text}': expected NAME=LOWEST:HIGHEST, such as mass=-0.1:0.2"
            ) from error
    return result


def parse_pushes(texts: list[str] | None) -> "list[Push] | None":
    """Return `["trunk=0,50,0@0.5:0.7"]` as pushes; None without texts.

    Raises:
        ProblemError: not of the form BODY=FX,FY,FZ@START:STOP, or a push that cannot act.
    """
    if not texts:
        return None
    return [_parse_push(text) for text in texts]


def _parse_push(text: str) -> "Push":
    from mbcasadi.validation import Push

    body, _, rest = text.rpartition("=")
    force, _, times = rest.partition("@")
    try:
        x, y, z = (float(number) for number in force.split(","))
        start, stop = (float(number) for number in times.split(":"))
        if not body.strip():
            raise ValueError("no body")
    except ValueError as error:
        raise ProblemError(
            f"'{text}': expected BODY=FX,FY,FZ@START:STOP in N and s, such as trunk=0,50,0@0.5:0.7"
        ) from error
    return Push(body.strip(), (x, y, z), start, stop)


def require_writable(path: Path, *suffixes: str) -> None:
    """Raise unless a report can be written to `path`, before a long run.

    Raises:
        ProblemError: another suffix, .html or .json by default, or a folder that is not writable.
    """
    expected = suffixes or (".html", ".json")
    if path.suffix not in expected:
        words = " or ".join(expected)
        raise ProblemError(f"{path}: expected a report file that ends with {words}")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ProblemError(f"cannot write {path}: {folder} is no folder that can be written to")
