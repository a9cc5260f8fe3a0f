"""What the stages behind the solver read again from the numbers that are carried over to them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca

from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
from mbcasadi.qp.rows import Rows

ROWS = ("C_p", "C_lam", "C_w", "C_a", "lower", "upper")
"""What is carried of the inequalities."""


def carried_condensed(known: Mapping[str, ca.SX]) -> Condensed:
    """Return motion and multipliers as functions of the actuator forces."""
    return Condensed(*(known[f"condensed.{key}"] for key in Condensed._fields))


def carried_rows(rows: Rows, known: Mapping[str, ca.SX]) -> Rows:
    """Return the inequalities of a controller, their numbers as they are carried over."""
    values: dict[str, Any] = {key: known[f"rows.{key}"] for key in ROWS}
    return replace(rows, **values)
