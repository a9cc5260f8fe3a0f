"""What to say about a name that is not there: the valid ones, the closest one, the other kind.

`unknown body 'FL_calv'; valid: 'FL_calf', ...; did you mean 'FL_calf'?`
`unknown site 'FL_calf'; valid: 'imu'; 'FL_calf' is the name of a body`
"""

import difflib
from collections.abc import Collection, Mapping, Sequence

from mbcasadi.errors import UnknownNameError

LISTED = 24
"""Names that a message lists at most; of more, those that are closest to the unknown one."""

CLOSE = 0.6
"""Similarity from which a name counts as meant; see `difflib.SequenceMatcher.ratio`."""

BEGINNING = 3
"""Letters from which a text counts as the beginning of a name."""


def require_name(
    kind: str,
    name: str,
    valid: Sequence[str],
    *,
    also: Collection[str] = (),
    elsewhere: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Raise `UnknownNameError` with the valid names unless `name` is one of them.

    Args:
        kind: of the name, for messages.
        name: of the caller.
        valid: names that the message lists.
        also: further names that are accepted.
        elsewhere: names of other kinds of things, by kind: the message says where the name is one.
    """
    if not isinstance(name, str) or (name not in valid and name not in also):
        raise unknown_name(kind, name, valid, elsewhere=elsewhere)


def unknown_name(
    kind: str,
    name: object,
    valid: Collection[str],
    *,
    elsewhere: Mapping[str, Collection[str]] | None = None,
) -> UnknownNameError:
    """Return the exception for a name that is none of the valid ones; see `require_name`."""
    names = list(dict.fromkeys(valid))
    others = [
        other for other, known in (elsewhere or {}).items() if name in known and other != kind
    ]
    hint = f"; {name!r} is the name of {' and '.join(map(_with_article, others))}" if others else ""
    if not others and isinstance(name, str):
        close = closest(name, names, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
    return UnknownNameError(f"unknown {kind} {name!r}; valid: {listed_names(name, names)}{hint}")


SYNONYMS = {"dt": ("period", "step", "timestep"), "sample_time": ("period",), "Ts": ("period",)}
"""What others call an argument → what it is called here, the first that a function has."""


def unknown_argument(function: str, name: str, valid: Collection[str]) -> TypeError:
    """Return the exception for an argument that a function does not take, in Python's words."""
    same = [each for each in SYNONYMS.get(name, ()) if each in valid]
    meant = [*same, *closest(name, list(valid), 1)][:1]
    hint = f"; did you mean '{meant[0]}='?" if meant else ""
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def listed_names(name: object, valid: Sequence[str]) -> str:
    """Return the valid names in a line, of many the closest ones and how many there are."""
    if len(valid) <= LISTED:
        return ", ".join(map(repr, valid)) or "none"
    close = closest(str(name), valid, LISTED // 2)
    shown = [*close, *(each for each in valid if each not in close)][:LISTED]
    return f"{', '.join(map(repr, shown))}, ... {len(valid) - LISTED} more"


def closest(name: str, valid: Sequence[str], count: int) -> list[str]:
    """Return names that resemble one, whatever their capitals are.

    Those that begin with it are first, then those that are most similar.
    """
    by_lower: dict[str, str] = {}
    for each in valid:
        by_lower.setdefault(each.lower(), each)
    start = name.lower()
    begin = [each for each in by_lower if len(start) >= BEGINNING and each.startswith(start)]
    first = difflib.get_close_matches(start, begin, count, cutoff=0.0) if begin else []
    similar = difflib.get_close_matches(start, by_lower, count, CLOSE)
    return [by_lower[each] for each in dict.fromkeys([*first, *similar])][:count]


def _with_article(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"
