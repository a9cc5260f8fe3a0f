"""The names of a system by the kind of thing that has them."""

from collections.abc import Sequence

from mbcasadi.system.names_of_tree import names_of_tree
from mbcasadi.system.system import System
from mbcasadi.unknown_names import require_name


def names_by_kind(system: System) -> dict[str, tuple[str, ...]]:
    """Return the names of joints, actuators, sites, bodies, geoms and so on, by kind."""
    of_model = {} if system.tree is None else names_of_tree(system.tree)
    return {
        **of_model,
        "actuator": system.actuator_names,
        "equality constraint": tuple(dict.fromkeys(system.constraint_names)),
        "coordinate": system.coordinate_names,
    }


def require_name_of(system: System, kind: str, name: str, valid: Sequence[str]) -> None:
    """Raise `UnknownNameError` unless a name is valid; the message knows the system's other names.

    Args:
        system: the mechanism.
        kind: of the name, for messages.
        name: of the caller.
        valid: names that can be taken.
    """
    if name not in valid:
        require_name(kind, name, valid, elsewhere=names_by_kind(system))
