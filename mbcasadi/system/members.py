"""Members of a `System`: their names, and the attributes that build them on first use."""

from typing import Protocol

import casadi as ca

MEMBERS = (
    "mass_matrix",
    "bias_force",
    "coriolis_matrix",
    "gravity_force",
    "kinetic_energy",
    "potential_energy",
    "total_energy",
    "passive_force",
    "actuation",
    "actuator_bias",
    "actuator_force",
    "act_dot",
    "constraint",
    "constraint_rate",
    "constraint_jacobian",
    "constraint_velocity",
    "constraint_bias",
    "loop_rate",
    "loop_jacobian",
    "loop_bias",
    "center_of_mass",
    "momentum",
    "velocity_map",
    "integrate",
    "difference",
)

MANIFOLD = ("velocity_map", "integrate", "difference")
"""Members that no physical parameter has an effect on."""

RESTS_ON = {
    "coriolis_matrix": ("bias_force", "mass_matrix"),
    "gravity_force": ("bias_force",),
    "kinetic_energy": ("mass_matrix",),
    "potential_energy": ("bias_force",),
    "total_energy": ("potential_energy", "kinetic_energy", "bias_force", "mass_matrix"),
    "center_of_mass": ("mass_matrix",),
    "momentum": ("mass_matrix",),
    "constraint_rate": ("constraint_jacobian",),
    "loop_rate": ("loop_jacobian",),
}
"""Members that are wrong where another one is: they share its refusals."""


class HasMembers(Protocol):
    """An object that builds its Functions by name."""

    def member(self, name: str) -> ca.Function:
        """Return the member Function `name`."""


class Member:
    """One named Function of a `System`, built on first use and kept."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, system: "HasMembers | None", owner: type | None = None) -> ca.Function:
        if system is None:
            return self  # type: ignore[return-value]  # the class attribute, for its docstring
        return system.member(self.name)
