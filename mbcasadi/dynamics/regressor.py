"""The regressor of a `System`: its equations, linear in masses, inertias, armature, damping."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description import RigidTree
from mbcasadi.description.parameters import ElementKind, Parameter, Parameters
from mbcasadi.errors import ProblemError, UnsupportedFeatureError
from mbcasadi.model.chain import chain_of
from mbcasadi.model.regressor import (
    LinearModel,
    MotionRates,
    linear_model,
    moving_bodies,
    parameters_of_body,
)
from mbcasadi.shapes import require_each
from mbcasadi.spatial import Scalar, is_zero, scalar
from mbcasadi.system import System
from mbcasadi.system.coordinates import RATE_UNITS
from mbcasadi.system.natural_sizes import model_length
from mbcasadi.system.parameter_attributes import INERTIA, XYZ
from mbcasadi.system.parametric import takes_parameters
from mbcasadi.unknown_names import unknown_name

EVERY = ("*",)

OF_BODY: tuple[tuple[str, tuple[str, ...], str, slice], ...] = (
    ("mass", (), "kg", slice(0, 1)),
    ("first_moment", XYZ, "kg m", slice(1, 4)),
    ("origin_inertia", INERTIA, "kg m²", slice(4, 10)),
)
"""Attributes of a body: name, entries, unit, place among its ten parameters."""


@dataclass(frozen=True)
class _Entry:
    """One parameter with its place: which part of a linear model, and its numbers there."""

    name: str
    kind: ElementKind
    index: int
    attribute: str
    components: tuple[str, ...]
    unit: str
    place: slice
    values: tuple[Scalar, ...]

    def columns(self, model: LinearModel) -> ca.SX:
        """Return (nv, k) the columns of these parameters."""
        if self.kind == "body":
            return model.bodies[self.index][:, self.place]
        return (model.armature if self.attribute == "armature" else model.damping)[self.index]


@checked
def linear_parameters(system: System, parameters: Sequence[str] = EVERY) -> Parameters:
    """Return θ of a model: the physical parameters in which its equations are linear.

    For each body that can move "body:forearm:mass" (kg), "body:forearm:first_moment" (m c, kg m)
    and "body:forearm:origin_inertia" (rotational inertia about the origin of the body frame,
    kg m²), in body axes; for each joint "joint:elbow:armature" and "joint:elbow:damping", one
    number for all its degrees of freedom.

    Args:
        system: read from a model.
        parameters: patterns of names, `*` and `?` as in a shell: "body:forearm:*".

    Returns:
        Names, units and the model's values, in the order of the model.

    Raises:
        UnknownNameError: a pattern matches nothing; the message lists what there is.
        ProblemError: a system that was given by equations has no such parameters.
        UnsupportedFeatureError: parameters of a body whose inertia box meets a medium.
    """
    chosen, _ = _chosen(_tree_of(system), parameters)
    return Parameters(
        tuple(
            Parameter(
                name=entry.name,
                kind=entry.kind,
                index=entry.index,
                attribute=entry.attribute,
                components=entry.components,
                unit=entry.unit,
                value=tuple(float(x) for x in entry.values),
                least=0.0 if entry.attribute in ("mass", "armature", "damping") else -float("inf"),
            )
            for entry in chosen
        )
    )


@checked
@takes_parameters
def regressor(system: System, parameters: Sequence[str] = EVERY) -> ca.Function:
    """Return (q, v, a, [p]) → (Y, y_0): `Y θ + y_0 = M a + h - f_passive`.

    θ is that of `linear_parameters(system, parameters)`; Y (nv, nθ). y_0 (nv, 1) is what is not
    linear in these or not of these: springs, polynomial dampers, tendons, actuators' armature and
    damping, fluid, and the parameters that are not chosen, at the model's numbers. Constraint
    forces are not in it: in a mechanism with loops `Pᵀ (Y θ + y_0)`, P on null(A), is the part that
    the actuators determine.

    Args:
        system: read from a model.
        parameters: patterns of names, as in `linear_parameters`.

    Raises:
        UnknownNameError, ProblemError: as `linear_parameters`.
        UnsupportedFeatureError: a feature of the model would make its equations wrong.
    """
    require_each("parameters", parameters, str)

    def make() -> ca.Function:
        q, v, a = _symbols(system, "v", "a")
        Y, rest = _parts(system, parameters, q, MotionRates(v, a))
        names = ["q", "v", "a"]
        return ca.Function("regressor", [q, v, a], [Y, rest], names, ["Y", "y_0"], {"cse": True})

    return system.cached_function(f"regressor {[*parameters]}", make)


@checked
@takes_parameters
def reference_regressor(system: System, parameters: Sequence[str] = EVERY) -> ca.Function:
    """Return (q, v, v_r, a_r, [p]) → (Y, y_0): `Y θ + y_0 = M a_r + C v_r + g - f_passive`.

    As `regressor`, with a reference velocity v_r and its rate a_r. C is `coriolis_matrix`,
    `dM/dt = C + Cᵀ`: so adaptive laws keep the energy of `v - v_r`  [J.-J. Slotine, W. Li, Int. J.
    Robotics Research 6, 1987]. Passive forces are those of the actual velocity v.

    Args:
        system: read from a model.
        parameters: patterns of names, as in `linear_parameters`.

    Raises:
        UnknownNameError, ProblemError, UnsupportedFeatureError: as `regressor`.
    """
    q, v, v_r, a_r = _symbols(system, "v", "v_r", "a_r")
    Y, rest = _parts(system, parameters, q, MotionRates(v, a_r, v_r))
    return ca.Function(
        "reference_regressor",
        [q, v, v_r, a_r],
        [Y, rest],
        ["q", "v", "v_r", "a_r"],
        ["Y", "y_0"],
        {"cse": True},
    )


def parameter_sizes(system: System, parameters: Parameters) -> NDArray[np.float64]:
    """Return (nθ,) a natural size of each parameter: that of a usual mass at a usual length."""
    tree = _tree_of(system)
    masses = [body.mass for body in tree.bodies if body.mass > 0]
    m, length = float(np.mean(masses)) if masses else 1.0, model_length(tree)
    coordinates, rate = system.scales.coordinates, system.scales.rate
    of_body = {"mass": m, "first_moment": m * length, "origin_inertia": m * length**2}
    sizes = []
    for item in parameters.items:
        if item.kind == "body":
            size = of_body[item.attribute]
        else:
            size = m * (length / coordinates[tree.joints[item.index].dof]) ** 2
            size *= rate if item.attribute == "damping" else 1.0
        sizes += [size] * len(item.value)
    return np.array(sizes)


def _symbols(system: System, *rates: str) -> tuple[ca.SX, ...]:
    return ca.SX.sym("q", system.nq), *(ca.SX.sym(name, system.nv) for name in rates)


def _tree_of(system: System) -> RigidTree:
    if system.tree is None:
        raise ProblemError(
            f"'{system.name}' was given by equations, which name no bodies: expected a system of "
            "read_mjcf. Where your expressions are linear in symbols θ, ca.jacobian gives Y"
        )
    return system.tree


def _parts(
    system: System, parameters: Sequence[str], q: ca.SX, rates: MotionRates
) -> tuple[ca.SX, ca.SX]:
    """Return Y of the chosen parameters, and y_0."""
    _tree_of(system)
    system.require_available("mass_matrix", "bias_force", "passive_force")
    numbers = system.numbers_at(q)
    model = linear_model(numbers.tree, numbers.actuators, q, rates)
    chosen, others = _chosen(numbers.tree, parameters)
    rest = model.rest
    for entry in others:
        if not all(is_zero(x) for x in entry.values):
            rest += entry.columns(model) @ ca.vertcat(*entry.values)
    Y = ca.horzcat(ca.SX(system.nv, 0), *(entry.columns(model) for entry in chosen))
    return ca.sparsify(Y), ca.densify(rest)


def _chosen(tree: RigidTree, patterns: Sequence[str]) -> tuple[list[_Entry], list[_Entry]]:
    """Return the entries that patterns match, and the others, in the order of the model."""
    require_each("parameters", patterns, str)
    entries = list(_entries(tree))
    for pattern in patterns:
        matches = [entry for entry in entries if fnmatchcase(entry.name, pattern)]
        if not matches and pattern not in EVERY:  # a model that cannot move has none
            raise unknown_name("parameter", pattern, [entry.name for entry in entries])
    matched = [any(fnmatchcase(entry.name, x) for x in patterns) for entry in entries]
    pairs = list(zip(entries, matched, strict=True))
    _require_linear(tree, [entry for entry, on in pairs if on])
    return [entry for entry, on in pairs if on], [entry for entry, on in pairs if not on]


def _require_linear(tree: RigidTree, chosen: Sequence[_Entry]) -> None:
    """Raise where the force of a medium depends on a chosen parameter."""
    medium = tree.fluid
    boxes = set() if medium is None else {box.body for box in medium.boxes}
    names = [tree.bodies[e.index].name for e in chosen if e.kind == "body" and e.index in boxes]
    if names:
        raise UnsupportedFeatureError(
            f"body '{names[0]}' meets the medium as its inertia box, whose sides follow from mass "
            "and inertia: the equations are not linear in these; choose other parameters, give its "
            'geoms fluidshape="ellipsoid", or set density and viscosity to 0'
        )


def _entries(tree: RigidTree) -> Iterator[_Entry]:
    for i in moving_bodies(chain_of(tree)):
        body = tree.bodies[i]
        values = parameters_of_body(body)
        for attribute, components, unit, place in OF_BODY:
            name = f"body:{body.name}:{attribute}"
            yield _Entry(name, "body", i, attribute, components, unit, place, values[place])
    for attribute, column in (("armature", tree.armature), ("damping", tree.damping)):
        for i, joint in enumerate(tree.joints):
            name, value = f"joint:{joint.name}:{attribute}", (scalar(column[joint.dof]),)
            unit = _unit(attribute, RATE_UNITS[joint.kind])
            yield _Entry(name, "joint", i, attribute, (), unit, slice(0, 1), value)


def _unit(attribute: str, units: Sequence[str]) -> str:
    """Return the unit of a joint's armature or damping; "" for a free joint, which has two."""
    if len(set(units)) > 1:
        return ""
    turns = units[0].startswith("rad")
    if attribute == "armature":
        return "kg m²" if turns else "kg"
    return "N m s/rad" if turns else "N s/m"
