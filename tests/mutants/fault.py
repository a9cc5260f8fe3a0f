"""One fault: a text in a file that becomes another one."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A place where an edit of some kind can be planted.

    Attributes:
        path: of the file, from the root of the tree.
        kind: "sign", "index" and so on.
        edit: the operator or pattern, by its name.
        line: number of the line, from 1.
        identity: a hash of path, edit, the text of the line, and which one of equal ones it is: the
            same while other lines of the file change.
        plant: text of the file → its text with the fault, or None where there is no such place.
    """

    path: str
    kind: str
    edit: str
    line: int
    identity: str
    plant: Callable[[str], str | None]


class Identities:
    """Names for the faults of one file."""

    def __init__(self, path: str) -> None:
        self._path, self._equal = path, Counter[tuple[str, str]]()

    def of(self, edit: str, line: str) -> str:
        """Return the hash of the next fault of an edit on a line of this text."""
        key = edit, line.strip()
        self._equal[key] += 1
        words = "|".join((self._path, *key, str(self._equal[key])))
        return hashlib.sha256(words.encode()).hexdigest()[:10]


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines that differ, with - and +, as one fault changes them."""
    old, new = before.splitlines(), after.splitlines()
    first = next(
        (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    yield from (f"- {line.strip()}" for line in old[first : len(old) - last])
    yield from (f"+ {line.strip()}" for line in new[first : len(new) - last])
