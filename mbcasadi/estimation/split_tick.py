"""A tick that is split where samples lie inside it, and Functions that are called where needed."""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from mbcasadi.description.status import Flag
from mbcasadi.qp.input_guard import MASK_ON


class LateSensor(NamedTuple):
    """A sensor whose samples may be late.

    Attributes:
        rows: entries of y.
        valid, residual: its entries of these.
    """

    rows: tuple[int, ...]
    valid: int
    residual: int


def if_needed(function: ca.Function, kept: Sequence[int | None]) -> ca.Function:
    """Return (needed, inputs) → (outputs) of a Function, which is called where it is needed only.

    Args:
        function: any.
        kept: for each output, the input that it is where it is not needed; None for zero.
    """
    s = [ca.MX.sym(f"i{k}", function.sparsity_in(k)) for k in range(function.n_in())]
    sizes = [function.size_out(k) for k in range(function.n_out())]
    rest = [ca.MX.zeros(*size) if k is None else s[k] for k, size in zip(kept, sizes, strict=True)]
    spared = ca.Function(f"{function.name()}_spared", s, rest)
    return ca.Function.if_else(f"{function.name()}_if_needed", function, spared)


def at_their_times(tick: ca.Function, late: Sequence[LateSensor]) -> ca.Function:
    """Return a tick with ages of its late sensors, less than dt: it is split at each of them.

    Args:
        tick: (y, valid, …, dt, z) → (…), a prediction where nothing is valid.
        late: the sensors.
    """
    s = {k: ca.MX.sym(k, tick.size_in(k)) for k in tick.name_in()}
    ages = ca.MX.sym("age", len(late))
    parts = _parts(s["valid"].numel(), late)(s["valid"], ages, s["dt"])
    early, z = list(tick.name_in()), s["z"]
    places = [sensor.residual for sensor in late]
    args = {key: ca.MX.sym(key, x.shape) for key, x in s.items()}
    out = tick(**args)
    outputs = [out["z_next"], out["residual"][places], out["flags"] > 0]
    first = ca.Function("early", [args[key] for key in early], outputs)
    part = if_needed(first, (early.index("z"), None, None))
    residual, gated = ca.MX.zeros(len(late)), ca.MX(0)
    for k in range(len(late)):
        due, dt = parts[0][:, k], parts[1][k]
        given = s | {"valid": due, "dt": dt, "z": z}
        z, found, flagged = part(ca.sum1(due) > 0, *(given[key] for key in early))
        residual += found
        gated = ca.logic_or(gated, flagged)
    out = tick(**s | {"valid": parts[2], "dt": parts[3], "z": z})
    out["residual"][places] += residual
    out["flags"] = Flag.GATED * ca.logic_or(gated, out["flags"] > 0)
    inputs = {k: x for k, x in s.items() if k not in ("dt", "z")}
    inputs |= {"age": ages, "dt": s["dt"], "z": s["z"]}
    outputs = [out[key] for key in tick.name_out()]
    return ca.Function(tick.name(), [*inputs.values()], outputs, [*inputs], tick.name_out())


def _parts(size: int, late: Sequence[LateSensor]) -> ca.Function:
    """Return (valid, age, dt) → (early, lengths, valid_last, dt_last): the parts of a split tick.

    Column k of `early` is `valid` of part k, whose length is that of `lengths`.
    """
    valid, age, rest = ca.SX.sym("valid", size), ca.SX.sym("age", len(late)), ca.SX.sym("dt")
    rows = [sensor.valid for sensor in late]
    early, lengths = ca.SX(size, len(late)), ca.SX(len(late), 1)
    waiting, last, dt = ca.logic_and(valid[rows] > MASK_ON, age > 0), ca.SX(valid), rest
    last[rows] = ca.if_else(waiting, 0, valid[rows])
    for k in range(len(late)):
        oldest = ca.mmax(waiting * age)
        due = ca.logic_and(waiting, age >= oldest)
        early[rows, k], lengths[k] = due, dt - oldest
        dt = ca.if_else(ca.sum1(due) > 0, oldest, dt)
        waiting = ca.logic_and(waiting, ca.logic_not(due))
    outputs = [ca.densify(x) for x in (early, lengths, last, dt)]
    return ca.Function("parts", [valid, age, rest], outputs, {"cse": True})
