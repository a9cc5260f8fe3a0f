"""A law whose reference is a table that it steps through, one row per tick.

The table is a constant of the generated C, and a state of the law counts the ticks. After the last
row that row is kept, so the output stays bounded after the horizon.
"""

from dataclasses import replace

import casadi as ca

from mbcasadi.control.law_interface.law import Law
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.description import Signal

STEP = "step"
"""Name of the state that counts ticks; a law of `schedule_gains` has it as its first."""


def next_step(step: ca.SX, rows: int) -> ca.SX:
    """Return the row of the next tick."""
    return ca.fmin(ca.fmax(step, 0) + 1, rows - 1)


def schedule_gains(law: Law, table: Array) -> Law:
    """Return `law` with its whole reference taken from the row that its first state counts.

    The state is rounded towards zero and clipped to the table, whatever its value.

    Args:
        law: its reference has as many entries as the table has columns, and its first state
            is the number of the row.
        table: (rows, nref).
    """
    rows = ca.MX(ca.DM(table.T))

    def with_table_row(function: ca.Function) -> ca.Function:
        s = {n: ca.MX.sym(n, function.size1_in(n)) for n in function.name_in()}
        step = ca.fmin(ca.fmax(s["z"][0], 0), table.shape[0] - 1)  # zero for NaN
        inputs = dict(s) | {"ref": rows[:, ca.floor(step)]}
        out = function.call([inputs[n] for n in function.name_in()])
        s["ref"] = ca.MX.sym("ref", 0)
        return ca.Function(
            function.name(), list(s.values()), out, function.name_in(), function.name_out()
        )

    original = law.controller
    controller = replace(
        original,
        function=with_table_row(original.function),
        monitor=None if original.monitor is None else with_table_row(original.monitor),
        inputs=tuple(_without_reference(signal) for signal in original.inputs),
    )
    equations = law.core.function
    joined = equations.expand(equations.name(), {"cse": True})  # not joined later behind a table
    core = replace(law.core, function=with_table_row(joined))
    return Law(
        controller=controller,
        slots=(),
        system=law.system,
        core=core,
        make_desired=lambda: with_table_row(law.desired),
    )


def _without_reference(signal: Signal) -> Signal:
    return Signal("ref", (), ()) if signal.name == "ref" else signal
