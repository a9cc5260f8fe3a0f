"""Python source as people's formatters write it: a call on one line, or one argument a line."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH = 100
"""Characters of a line."""


@dataclass(frozen=True)
class Call:
    """Brackets with what is in them.

    Attributes:
        opening: all up to and with the bracket, `law = InverseDynamicsQP(`.
        items: what is in it.
        closing: the bracket, and what follows.
        separator: "," between arguments, "" between the clauses of a comprehension.
    """

    opening: str
    items: "Sequence[Call | str]"
    closing: str = ")"
    separator: str = ","

    def __str__(self) -> str:
        return f"{self.opening}{self.inside}{self.closing}"

    @property
    def inside(self) -> str:
        """The items on one line."""
        return f"{self.separator} ".join(map(str, self.items))

    def text(self, indent: int = 0, after: int = 0) -> str:
        """Return its lines, the first one without indent; `after` characters follow the last."""
        if indent + len(str(self)) + after <= WIDTH or not self.items:
            return str(self)
        pad = " " * (indent + 4)
        if len(pad + self.inside) <= WIDTH:
            lines = [f"{pad}{self.inside}"]
        else:
            size = len(self.separator)
            texts = [
                item if isinstance(item, str) else item.text(len(pad), size) for item in self.items
            ]
            lines = [f"{pad}{text}{self.separator}" for text in texts]
        return "\n".join([self.opening, *lines, " " * indent + self.closing])


def literal(value: object) -> str:
    """Return a value of a file as Python."""
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return f"{value:.15g}" if abs(value) < float("inf") else f'float("{value}")'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)


def filled_list(name: str, values: Sequence[object]) -> str:
    """Return the line of a list; a long one is filled, which formatters would not."""
    whole, pad = Call(f"{name} = [", [*map(literal, values)], "]"), " " * 4
    if len(pad + whole.inside) <= WIDTH:
        return whole.text()
    texts = [item.replace(" ", "\0") for item in map(str, whole.items)]
    filled = textwrap.fill(
        ", ".join(texts) + ",",
        WIDTH,
        initial_indent=pad,
        subsequent_indent=pad,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"# fmt: off\n{name} = [\n{filled}\n]\n# fmt: on".replace("\0", " ")


def arguments_of(table: Mapping[str, object]) -> list[str]:
    """Return keyword arguments with the values of a table."""
    return [f"{key}={literal(value)}" for key, value in table.items()]


def entries_of(table: Mapping[str, object]) -> list[str]:
    """Return the entries of a dict."""
    return [f"{literal(key)}: {literal(value)}" for key, value in table.items()]
