"""Signatures of the public functions and classes, as `help` shows them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pytest
from fuzz.public_names import public_callables
from numpy.typing import ArrayLike, NDArray

import mbcasadi as mb
from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ShapeError

CALLABLES = public_callables()
HEAD, FOR_EACH = 60, 50
"""Longest signature in characters: a return value, and a name with its annotation and default."""


@pytest.mark.parametrize("path", sorted(CALLABLES))
def test_a_signature_is_short_enough_to_read(path):
    signature = inspect.signature(CALLABLES[path])
    text = str(signature)
    assert len(text) <= HEAD + FOR_EACH * len(signature.parameters), text
    assert "numpy" not in text, text


def test_every_argument_has_a_name_unless_names_are_the_callers():
    for path, entry in CALLABLES.items():
        kinds = {each.kind for each in inspect.signature(entry).parameters.values()}
        unnamed, names = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_KEYWORD
        assert unnamed not in kinds or names in kinds, path


def test_annotations_are_shown_as_their_author_wrote_them():
    @checked
    def of_all_kinds(
        q: ArrayLike | None,
        at: Callable[[float, NDArray[np.float64]], ArrayLike],
        system: mb.System,
        errors: Mapping[str, float] | None = None,
        side: Literal["left", "right"] = "left",
        *more: int,
    ) -> tuple[NDArray[np.float64], ...]:
        return (np.zeros(len(more)),)

    assert str(inspect.signature(of_all_kinds)) == (
        "(q: ArrayLike | None, at: Callable[[float, NDArray], ArrayLike], system: System, "
        "errors: Mapping[str, float] | None = None, side: Literal['left', 'right'] = 'left', "
        "*more: int) -> tuple[NDArray, ...]"
    )


def test_a_readable_signature_binds_and_checks_as_before():
    bound = inspect.signature(mb.linearize).bind("system", q=[0.0])
    assert bound.arguments == {"system": "system", "q": [0.0]}
    with pytest.raises(ShapeError, match="expected numbers or None"):
        mb.equilibrium(mb.read_mjcf(mb.models.path("four_bar")), q0="up")
