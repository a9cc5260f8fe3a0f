"""What is measured: coordinates and rates by name."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names, rates
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.system.parametric import at_model_values


@checked
@at_model_values
def encoders(system: System, positions: Sequence[str], speeds: Sequence[str] = ()) -> ca.Function:
    """Return (q, v) → (y): positions, then speeds, of coordinates given by name.

    Args:
        system: the mechanism.
        positions, speeds: joints that have one coordinate, or the `coordinate_names` of a system
            that is given by equations.

    Raises:
        UnknownNameError: an unknown name, or a ball or free joint, whose position has several
            coordinates.
        ProblemError: nothing is measured.
    """
    if not (positions or speeds):
        raise ProblemError("nothing is measured; expected the name of a joint")
    all_rates = list(rate_names(system))
    rows = coordinate_rows(system, positions)
    for name in speeds:
        require_name_of(system, "coordinate", name, all_rates)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    y = ca.vertcat(*(q[row] for row in rows), *(v[all_rates.index(n)] for n in speeds))
    return ca.Function("encoders", [q, v], [y], ["q", "v"], ["y"])


def coordinate_rows(system: System, names: Sequence[str]) -> tuple[int, ...]:
    """Return the row of q of each of these coordinates.

    Raises:
        UnknownNameError: an unknown name, or a joint whose position has several coordinates.
    """
    places = _places(system)
    for name in names:
        require_name_of(system, "coordinate", name, list(places))
    return tuple(places[name] for name in names)


def _places(system: System) -> dict[str, int]:
    """Return the row of q of each coordinate that is a plain number."""
    if system.tree is None:
        names = rates(system).components
        return dict(zip(names, range(system.nq), strict=False)) if system.nq == system.nv else {}
    return {j.name: j.qpos for j in system.tree.joints if j.kind in ("hinge", "slide")}
