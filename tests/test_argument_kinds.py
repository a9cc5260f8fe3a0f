"""An argument that is not what its annotation says is refused before the function starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeVar, Unpack

import casadi as ca
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError, ShapeError

Sym = TypeVar("Sym", ca.SX, ca.MX)


class Options(TypedDict, total=False):
    gain: float
    method: str


@checked
def entry(
    number: float = 0.0,
    count: int = 0,
    text: str = "",
    on: bool = False,
    values: ArrayLike = 0.0,
    array: NDArray[np.float64] | None = None,
    names: Sequence[str] = (),
    pair: tuple[float, float] = (0.0, 1.0),
    weights: Mapping[str, float] | None = None,
    call: Callable[[float], float] | None = None,
    kind: Literal["site", "body"] = "site",
    symbols: ca.SX | float = 0.0,
    anything: Any = None,
    **options: Unpack[Options],
) -> float:
    """Return the number; the rest is only checked."""
    return number


RIGHT = [
    {"number": np.float64(1)},
    {"number": np.array(2)},
    {"number": np.inf},
    {"number": 3},
    {"count": np.int64(2)},
    {"on": np.True_},
    {"values": [[1, 2], [3, 4]]},
    {"values": ca.DM([1, 2])},
    {"array": None},
    {"array": [1.0, 2.0]},
    {"names": ["a"]},
    {"names": ("a", "b")},
    {"pair": [0, 1]},
    {"pair": np.zeros(2)},
    {"weights": {"a": 1}},
    {"call": np.sin},
    {"call": None},
    {"kind": "body"},
    {"symbols": ca.SX.sym("x", 2)},
    {"symbols": 1},
    {"anything": object()},
    {"gain": 1.0, "method": "own"},
]

WRONG = [
    ({"number": "1"}, "number is '1'; expected a number"),
    ({"number": np.nan}, "number = nan; expected a number"),
    ({"number": None}, "number is None; expected a number"),
    ({"number": [1.0]}, "number is a list; expected a number"),
    ({"number": 1j}, "number is a complex; expected a number"),
    ({"count": 1.5}, "count = 1.5; expected a whole number"),
    ({"count": True}, "count is True; expected a whole number"),
    ({"count": int}, "count is the class int; expected a whole number"),
    ({"text": 1}, "text is 1; expected a text"),
    ({"on": "no"}, "on is 'no'; expected True or False"),
    ({"on": 1}, "on is 1; expected True or False"),
    ({"names": "ab"}, "names is 'ab'; expected a list of names"),
    ({"names": ["a", 1]}, "names is a list with 1; expected a list of names"),
    ({"pair": (1.0,)}, "pair is 1 long; expected a list of 2 numbers"),
    (
        {"weights": {"a": "b"}},
        "weights is a mapping with 'b' for 'a'; expected a mapping from",
    ),
    ({"call": 1}, "call is 1; expected a function or None"),
    ({"kind": "geom"}, "kind is 'geom'; expected 'site', 'body'"),
    ({"symbols": ca.MX.sym("x")}, "symbols is a MX; expected a SX or a number: symbols or"),
    ({"gain": "high"}, "gain is 'high'; expected a number"),
]

WRONG_ARRAYS = [
    ({"values": "1"}, "values is '1'; expected numbers"),
    ({"values": None}, "values is None; expected numbers"),
    ({"values": [1.0, None]}, "values is a list; expected numbers"),
    ({"values": ["1", "2"]}, "values is a list; expected numbers"),
    ({"values": np.array([1j])}, "values is complex"),
    ({"array": {"a": 1}}, "array is a dict; expected numbers or None"),
    ({"array": np.ma.masked_array([1.0], [True])}, "array has 1 masked entries"),
]


@pytest.mark.parametrize("given", RIGHT)
def test_what_the_annotation_says_is_accepted(given):
    assert entry(**given) == given.get("number", 0.0)


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_what_it_does_not_say_is_refused_in_words(given, words):
    with pytest.raises(ProblemError) as refusal:
        entry(**given)
    assert str(refusal.value).startswith(words)


@pytest.mark.parametrize(("given", "words"), WRONG_ARRAYS)
def test_what_is_no_array_of_numbers_is_a_wrong_shape(given, words):
    with pytest.raises(ShapeError) as refusal:
        entry(**given)
    assert str(refusal.value).startswith(words)


def test_each_of_several_arguments_is_checked_by_its_name():
    @checked
    def several(*symbols: ca.SX, **values: float) -> int:
        return len(symbols) + len(values)

    assert several(ca.SX(1), ca.SX(2), a=1.0) == 3
    with pytest.raises(ProblemError, match="symbols is 2; expected a SX"):
        several(ca.SX(1), 2)
    with pytest.raises(ProblemError, match="b is 'c'; expected a number"):
        several(a=1.0, b="c")


def test_a_variable_of_kinds_stands_for_each_of_them():
    @checked
    def twice(x: Sym) -> Sym:
        return x + x

    assert twice(ca.MX.sym("x", 2)).shape == (2, 1)
    with pytest.raises(ProblemError, match="x is a DM; expected a SX or a MX"):
        twice(ca.DM(1))


def test_a_call_that_does_not_fit_the_signature_is_python_s_own_error():
    with pytest.raises(TypeError, match="missing"):
        checked(lambda x: x)()


def test_data_check_their_fields():
    @dataclass(frozen=True)
    class Data:
        rate: float
        names: tuple[str, ...] = ()

        def __post_init__(self) -> None:
            require_fields(self)

    assert Data(1, ("a",)).rate == 1
    with pytest.raises(ProblemError, match="rate is None; expected a number"):
        Data(None)
    with pytest.raises(ProblemError, match="names is a list with 1; expected a list of names"):
        Data(1.0, [1])
