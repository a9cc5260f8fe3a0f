"""How far the C of a controller may be from its Function."""

import numpy as np

from support.rounding import assert_same_program

SOLVER = 1e-6  # residuals of a solver that count as none


def column_of(values, k):
    """Return one state."""
    return {name: value[:, k] for name, value in values.items()}


def assert_program_is_the_function(law, program, values, case):
    """Assert that the C answers as the Function at every state; return the Function's outputs.

    Outputs are compared to `case.same` of their size. An active set need not be unique, and of a
    solver's residuals only the size counts.
    """
    count = values["q"].shape[1]
    function, program = law.function.map(count), program.map(count)
    if case.rounds:
        return assert_same_program(function, program, values)
    ours = {name: value.full() for name, value in function(**values).items()}
    theirs = {name: value.full() for name, value in program(**values).items()}
    active = law.problems * len(law.row_names) if hasattr(law, "row_names") else 0
    for name, own in ours.items():
        other, same = theirs[name], case.same
        if name == "z_next":
            own, other = own[active:], other[active:]
        if name == "residual" and hasattr(law, "row_names"):
            solved = ours["status"][0] == 0
            own, other, same = own[:, solved], other[:, solved], max(same, SOLVER)
        if name in ("status", "flags", "relaxed"):
            same = 0.0
        equal = own == other  # infinities of a refused input too
        gap = np.abs(np.where(equal, 0, other) - np.where(equal, 0, own))
        size = 1 + np.abs(np.where(np.isfinite(own), own, 0)).max(axis=0, initial=0.0)
        worst = np.max(gap / size, axis=0, initial=0.0)
        assert np.all(worst <= same), (name, int(worst.argmax()), worst.max())
    return ours
