"""Layout of the supervision's state and of a log's records, the same in C and in Python.

Fields come in an order that leaves no gaps on any target: numbers, then 32-bit integers in an even
count.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from mbcasadi.codegen.c_interface import DIGITS
from mbcasadi.codegen.emergency import keeps_last
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.sizes import memory_doubles
from mbcasadi.codegen.stack import LIBRARY, stack_bytes
from mbcasadi.codegen.supervision.plan import Plan
from mbcasadi.codegen.supervision.supervision import TickEvent

HEADER_FIELDS = (
    ("ready", "u4"),
    ("header_bytes", "u4"),
    ("record_bytes", "u4"),
    ("capacity", "u4"),
    ("next", "u4"),
    ("filled", "u4"),
    ("ticks", "u4"),
    ("sum", "u4"),
    ("signature", "S24"),
    ("code", "S24"),
    ("build", "S96"),
)
"""Of a log: name, type."""

BUILD_BYTES = 96
LOG_READY = 0x6D626C67
REAL, INT, UNSIGNED = "real", "i4", "u4"

RECORD_INTEGERS = (
    ("begin", UNSIGNED),
    ("sample", UNSIGNED),
    ("given", UNSIGNED),
    ("phase", INT),
    ("code", INT),
    ("events", UNSIGNED),
    ("fault", INT),
    ("end", UNSIGNED),
    ("first_sum", UNSIGNED),
    ("second_sum", UNSIGNED),
)
"""The sums are of all before `end`."""

VOLATILE = ("begin", "end")
"""Members that another thread looks at."""


class FieldEntry(TypedDict):
    """One field of a record in the manifest; `type` is real, i4 or u4."""

    name: str
    type: str
    count: int


@dataclass(frozen=True)
class Field:
    """One member: `used` entries have a meaning, of `count` in memory."""

    name: str
    type: str
    used: int

    @property
    def count(self) -> int:
        """Entries in memory: C has no empty arrays."""
        return max(1, self.used)

    def c_text(self, real: Real) -> str:
        """Return the member in C."""
        kind = {REAL: real, INT: "int32_t", UNSIGNED: "uint32_t"}[self.type]
        size = f"[{self.count}]" if self.type == REAL or self.name == "since" else ""
        prefix = "volatile " if self.name in VOLATILE else ""
        return f"  {prefix}{kind} {self.name}{size};\n"


def state_fields(plan: Plan) -> list[Field]:
    """Return the members of the state: what one tick hands to the next."""
    law = plan.law
    fields = [
        Field("z", REAL, law.nz),
        Field("last", REAL, law.nu),
        Field("offset", REAL, law.nu),
        Field("accepted", REAL, plan.entries),
    ]
    if keeps_last(law):
        fields.append(Field("law_last", REAL, law.nu))
    kept = [*(["law_age"] if keeps_last(law) else []), *(["law_limit"] if law.staged else [])]
    fields += [
        Field("sample", UNSIGNED, 1),
        *(Field(name, INT, 1) for name in ("has_sample", "age", "failed", "good", "fade")),
        *(Field(name, INT, 1) for name in ("source", "is_pending", "is_tripped", "has_last")),
        *(Field(name, INT, 1) for name in kept),
    ]
    integers = sum(field.type != REAL for field in fields)
    since = max(1, len(plan.checked))
    return [*fields, Field("since", INT, since + (integers + since) % 2)]


def record_fields(plan: Plan) -> list[Field]:
    """Return the members of a record behind the state before the tick."""
    return [
        Field("in", REAL, sum(port.size for port in plan.inputs)),
        Field("out", REAL, sum(port.size for port in plan.outputs)),
        *(Field(name, kind, 1) for name, kind in RECORD_INTEGERS),
    ]


def entries_of(fields: list[Field], prefix: str = "") -> list[FieldEntry]:
    """Return fields for the manifest."""
    return [{"name": f"{prefix}{f.name}", "type": f.type, "count": f.count} for f in fields]


def log_fields(plan: Plan) -> list[FieldEntry]:
    """Return all fields of a record in their order."""
    return [*entries_of(state_fields(plan), "before."), *entries_of(record_fields(plan))]


def record_type(fields: list[FieldEntry], real: Real) -> np.dtype[Any]:
    """Return NumPy's type of a record."""
    kinds = {REAL: "f4" if real == "float" else "f8", INT: "i4", UNSIGNED: "u4"}
    return np.dtype([(f["name"], kinds[f["type"]], (f["count"],)) for f in fields])


def header_type() -> np.dtype[Any]:
    """Return NumPy's type of a log's header."""
    return np.dtype(list(HEADER_FIELDS))


def supervised_state_doubles(plan: Plan) -> int:
    """Return the size of what one tick hands to the next in doubles."""
    return -(-record_type(entries_of(state_fields(plan)), plan.law.real).itemsize // 8)


def supervised_doubles(plan: Plan) -> int:
    """Return the size of the caller's memory in doubles."""
    real = plan.law.real
    state = record_type(entries_of(state_fields(plan)), real).itemsize
    outputs = max(1, sum(port.size for port in plan.outputs))
    nz = plan.law.nz
    reals, pointers, integers = outputs + max(1, nz), 0, 8
    f = plan.safe_law
    if f is not None:
        reals += plan.law.nu + max(1, int(f.sz_w()))
        pointers = int(f.sz_arg()) + max(1, int(f.sz_res()))
        integers += 2 * max(1, int(f.sz_iw()))  # casadi_int has eight bytes
    bytes_ = state + (4 if real == "float" else 8) * reals + 8 * pointers + 4 * integers
    gaps = 4 * 8
    return memory_doubles(plan.law) + (bytes_ + gaps + 7) // 8


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


def law_code(plan: Plan, contents: Mapping[str, bytes]) -> bytes:
    """Return the C of the law with what it executes of another file."""
    return contents[f"{plan.law.name}.c"] + plan.law.other_text.encode()


def supervision_entry(plan: Plan, contents: Mapping[str, bytes]) -> SupervisionEntry:
    """Return the manifest's entry."""
    name = plan.law.name
    files = [contents[f"{name}{end}"] for end in (".c", ".h", "_supervised.c")]
    files[0] = law_code(plan, contents)
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
