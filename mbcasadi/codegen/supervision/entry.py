"""What the manifest says of a supervision."""

import hashlib
from collections.abc import Mapping
from typing import TypedDict

from mbcasadi.codegen.signature import DIGITS
from mbcasadi.codegen.stack import LIBRARY, stack_bytes
from mbcasadi.codegen.supervision.layout import FieldEntry, log_fields, supervised_doubles
from mbcasadi.codegen.supervision.plan import Plan
from mbcasadi.codegen.supervision.supervision import TickEvent


class SupervisionEntry(TypedDict):
    """What the manifest says of a supervision; None for a limit that is infinite."""

    memory_bytes: int
    stack_bytes: int
    code: str
    stale_after: int | None
    trip_after: int
    recover_after: int | None
    fade_ticks: int
    safe_law: list[str] | None
    spoiled: str | None
    events: dict[str, int]
    record: list[FieldEntry]


def code_hash(*files: bytes) -> str:
    """Return a short hash of all C that a tick executes."""
    return hashlib.sha256(b"\0".join(files)).hexdigest()[:DIGITS]


def supervision_entry(plan: Plan, contents: Mapping[str, bytes]) -> SupervisionEntry:
    """Return the manifest's entry."""
    name = plan.law.name
    files = [contents[f"{name}{end}"] for end in (".c", ".h", "_supervised.c")]
    safe = plan.safe_law
    return {
        "memory_bytes": 8 * supervised_doubles(plan),
        "stack_bytes": _stack_bytes(files[0], files[2]),
        "code": code_hash(*files),
        "stale_after": plan.stale_after if plan.stale_after >= 0 else None,
        "trip_after": plan.trip_after,
        "recover_after": plan.recover_after if plan.recover_after >= 0 else None,
        "fade_ticks": plan.fade_ticks,
        "safe_law": None if safe is None else list(safe.name_in()),
        "spoiled": plan.spoiled.name if plan.spoiled else None,
        "events": {str(event.name): int(event) for event in TickEvent},
        "record": log_fields(plan),
    }


def _stack_bytes(law: bytes, supervised: bytes) -> int:
    """Return the bound of the stack of a supervised tick: its own frames and those of the law."""
    return stack_bytes(law.decode()) + stack_bytes(supervised.decode()) - LIBRARY
