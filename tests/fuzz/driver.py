"""Calls a function with one wrong argument after the other."""

import inspect
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from fuzz.wrong_values import Wrong, never, perhaps, spoiled
from mbcasadi.errors import MbcasadiError


@dataclass(frozen=True)
class Finding:
    argument: str
    wrong: str
    outcome: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.argument} = {self.wrong}: {self.outcome}"


def annotation_of(parameter: inspect.Parameter) -> str:
    note = parameter.annotation
    text = "Any" if note is inspect.Parameter.empty else str(note)
    if isinstance(note, type):
        text = note.__name__
    return text.replace("NoneType", "None") + (" None" if parameter.default is None else "")


def values_for(parameter: inspect.Parameter) -> Iterator[tuple[Wrong, bool]]:
    """Yield wrong values of an argument, and whether each must be refused."""
    note = annotation_of(parameter)
    anything = note == "bool" or note == "Any" or note == "object"
    for wrong in never():
        allowed = anything or any(re.search(rf"\b{re.escape(w)}\b", note) for w in wrong.allowed)
        yield wrong, not allowed
    for wrong in perhaps():
        yield wrong, False
    for name, objects in spoiled().items():
        if re.search(rf"\b{name}\b", note):
            many = "Sequence[" in note
            for text, value in objects:
                yield Wrong(text, [value] if many else value), True


def outcome_of(call: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Return "", "accepted", or the name of an exception that is none of ours."""
    try:
        result = call(**arguments)
        if hasattr(result, "__enter__") and hasattr(result, "gen"):
            with result:
                pass
    except MbcasadiError:
        return ""
    except Exception as error:
        last = error.__traceback__
        while last.tb_next is not None:
            last = last.tb_next
        code = last.tb_frame.f_code
        return f"{type(error).__name__}: {str(error)[:90]!r} at {code.co_filename.split('site-packages/')[-1].split('fuzz/mbcasadi/')[-1]}:{last.tb_lineno}"
    return "accepted"
