"""Options of commands, as records: a parameter of a command that is one is an option per field.

The conditions of a run are the fields of `Trial` with their docs, and so are other options those
of what the command calls. They are read from the source, as importing it takes long.
"""

import ast
import functools
import inspect
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
from mbcasadi.errors import ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation import Push
    from mbcasadi.validation.spec import Spec

C = TypeVar("C", bound=Callable[..., None])
V = TypeVar("V")

Model = Annotated[
    str, typer.Argument(help="MJCF or URDF file, or the name of a model of the package.")
]


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
        with console.details(any(getattr(each, "verbose", False) for each in values.values())):
            function(**values)

    shown: Any = console.handle_errors(run, [each.name for each in parameters])
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
        """Return the controller, under the conditions of the command line.

        Errors of the plant that the command line does not name are those of the file.
        """
        from mbcasadi.validation.spec import read_spec

        spec = read_spec(self.controller, allow_code=self.allow_code)
        own = {} if conditions is None else given(conditions)
        if own.get("perturb"):
            own["perturb"] = {**spec.trial.perturb, **own["perturb"]}
        return spec.with_trial(**own)


def record_of(*sources: tuple[str, Sequence[str]], optional: bool = False) -> Any:
    """Return a record of options with fields of dataclasses, or arguments of functions.

    Args:
        sources: `validation.trial.Trial`, module and name, and which of its fields.
        optional: None is the default of all, in place of that in the source.
    """
    options, annotated = [], typing.cast(Any, Annotated)  # of a computed type
    for source, names in sources:
        known, docs = _read(source)
        for name in names:
            annotation, value = known[name]
            required = value is None and not optional
            default = value.value if isinstance(value, ast.Constant) and not optional else None
            kind = KINDS[annotation.removesuffix(" | None")]
            option = typer.Option(*FLAGS.get(name, ()), help=TEXTS.get(name) or _help(docs[name]))
            hint = annotated[kind if required or default is not None else kind | None, option]
            options.append((name, hint, field() if required else field(default=default)))
    return make_dataclass("Options", options, frozen=True)


def _help(text: str) -> str:
    """Return the first sentence of a text, without the marks of code."""
    first = re.split(r"[.;] (?=[A-Z])", text.replace("`", ""))[0].rstrip(".") + "."
    return first[:1].upper() + first[1:] if first[1].isalpha() else first


def _read(source: str) -> tuple[dict[str, tuple[str, ast.expr | None]], dict[str, str]]:
    """Return annotation and default of each field or argument, and its docs, from the source."""
    module, _, kind = source.rpartition(".")
    path = Path(mbcasadi.__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    node = next(
        x for x in nodes if isinstance(x, ast.ClassDef | ast.FunctionDef) and x.name == kind
    )
    docs = documented(ast.get_docstring(node) or "")
    if isinstance(node, ast.ClassDef):
        lines = [x for x in node.body if isinstance(x, ast.AnnAssign)]
        return {ast.unparse(x.target): (ast.unparse(x.annotation), x.value) for x in lines}, docs
    plain, named = node.args.args, node.args.kwonlyargs
    first = [None] * (len(plain) - len(node.args.defaults))
    defaults = [*first, *node.args.defaults, *node.args.kw_defaults]
    pairs = zip([*plain, *named], defaults, strict=True)
    return {each.arg: (ast.unparse(each.annotation or each), d) for each, d in pairs}, docs


KINDS: dict[str, Any] = {
    "bool": bool,
    "float": float,
    "int": int,
    "str": str,
    "Design": str,
    "str | Path": Path,
    "Sequence[int]": list[int],
    "Mapping[str, float]": list[str],
    "Mapping[str, Sequence[float]]": list[str],
    "Disturbance": list[str],
}
"""Annotation of a field → type of its option."""

FLAGS = {
    "disturbance": ("--push",),
    "viewer": ("--viewer",),
    "browser": ("--browser",),
    "ranges": ("--range",),
    "delays": ("--delay",),
}
TEXTS = {
    "perturb": "Error of the plant, such as mass=0.1; repeatable.",
    "disturbance": "Force on a body of the plant, BODY=FX,FY,FZ@START:STOP in N (world axes) and "
    "s, such as trunk=0,50,0@0.5:0.7; repeatable. They replace those of the file.",
    "ranges": "Range of an error that all bodies share, such as mass=-0.1:0.2, delay=0:3, "
    "start_error=0:0.1, or sensor_noise=0.5:3, a factor on that of the file's table `estimation`; "
    "repeatable. --runs points of --design are drawn.",
    "delays": "Ticks; repeatable, all combinations.",
    "jobs": "Processes; the cores by default.",
    "runs": "Number of plants, 10 by default; each draws its own errors.",
    "states": "Random states; 20, of a corpus 5, by default.",
    "frames": "Named sites, and as many bodies, to compare; 6, of a corpus 2, by default.",
}
"""What the command line writes in another way than Python."""


def given(record: Any) -> dict[str, Any]:
    """Return the fields of a record that the command line gives, as Python has them."""
    parsers = {"perturb": parse_numbers, "disturbance": parse_pushes, "ranges": parse_ranges}
    values = {name: value for name, value in vars(record).items() if value is not None}
    return {k: parsers[k](value) if k in parsers else value for k, value in values.items()}


CONDITIONS = ("duration", "rigid", "perturb", "disturbance", "fast")
TRIAL = "validation.trial.Trial"
Conditions = record_of((TRIAL, (*CONDITIONS, "delay")), optional=True)
ConditionsOfAll = record_of((TRIAL, CONDITIONS), optional=True)


def find_model(model: str) -> Path:
    """Return the file of `model`: a path, or the name of a model of the package.

    Raises:
        ModelError: there is neither such a file nor such a name; the message lists the names.
    """
    return models.find(model)


def parse_direction(text: str) -> tuple[float, float, float]:
    """Return `"-x"` as `(-1, 0, 0)`, and `"1,1,0"` as its numbers.

    Raises:
        ProblemError: neither an axis with its sign nor three numbers.
    """
    if len(text) == 2 and text[0] in "+-" and text[1] in "xyz":
        x, y, z = (float(f"{text[0]}{int(axis == text[1])}") + 0.0 for axis in "xyz")
        return x, y, z
    try:
        x, y, z = map(float, text.split(","))
    except ValueError:
        expected = "an axis such as +x or -y, or three numbers such as 1,1,0"
        raise ProblemError(f"--ahead {text}: expected {expected}") from None
    return x, y, z


def parse_numbers(texts: Sequence[str]) -> dict[str, float]:
    """Return `["mass=0.1"]` as `{"mass": 0.1}`.

    Raises:
        ProblemError: not of the form NAME=NUMBER.
    """
    return _named(texts, float, "NAME=NUMBER, such as mass=0.1")


def parse_ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return `["mass=-0.1:0.2"]` as `{"mass": (-0.1, 0.2)}`.

    Raises:
        ProblemError: not of the form NAME=LOWEST:HIGHEST.
    """

    def ends(text: str) -> tuple[float, float]:
        lowest, _, highest = text.partition(":")
        return float(lowest), float(highest)

    return _named(texts, ends, "NAME=LOWEST:HIGHEST, such as mass=-0.1:0.2")


def parse_pushes(texts: Sequence[str]) -> "list[Push]":
    """Return `["trunk=0,50,0@0.5:0.7"]` as pushes.

    Raises:
        ProblemError: not of the form BODY=FX,FY,FZ@START:STOP, or a push that cannot act.
    """
    from mbcasadi.validation import Push

    def push(text: str) -> tuple[tuple[float, ...], float, float]:
        force, _, times = text.partition("@")
        x, y, z = map(float, force.split(","))
        start, stop = map(float, times.split(":"))
        return (x, y, z), start, stop

    expected = "BODY=FX,FY,FZ@START:STOP in N and s, such as trunk=0,50,0@0.5:0.7"
    each = [_named([text], push, expected) for text in texts]  # a body may be pushed twice
    return [Push(body, *values) for named in each for body, values in named.items()]


def _named(texts: Sequence[str], read: Callable[[str], V], expected: str) -> dict[str, V]:
    """Return what `NAME=VALUE` says, by name.

    Raises:
        ProblemError: a text of another form.
    """
    result = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            result[name.strip()] = read(value)
        except ValueError as error:
            raise ProblemError(f"'{text}': expected {expected}") from error
        if not name.strip():
            raise ProblemError(f"'{text}': expected {expected}")
    return result
