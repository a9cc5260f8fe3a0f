"""Parameters between the outside, where they are the input p, and the equations.

Inside, a system carries its parameters behind the configuration, as coordinates that never move:
`q = (q of the joints, p)`, `dq/dt = N v` with rows of zeros. So every equation, law and derivative
that knows a configuration knows them, without a further argument. Outside, p is an input of its
own.
"""

from collections.abc import Mapping
from typing import cast

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description.parameters import Parameters
from mbcasadi.description.tolerance import tolerance
from mbcasadi.errors import ShapeError
from mbcasadi.linalg.symbols import Sym
from mbcasadi.shapes import real_array, require_name
from mbcasadi.spatial.quaternions import LEAST_MEASURED2

Array = NDArray[np.float64]

NEXT = "q_next"
"""Name of an output that is a configuration."""

BEFORE = ("t", "mask", "h", "step", "d")
"""Inputs that come behind p; see design of optional inputs: act, p, t, mask."""

INERTIA_TOL = tolerance(1e-9)
"""Second moments of mass may be negative by this share of their sum: rounding of thin bodies."""


def with_parameter_input(function: ca.Function, count: int) -> ca.Function:
    """Return a Function of q and p in place of one whose q carries p.

    Args:
        function: with an input q (nq + count,).
        count: size of p.
    """
    kind = symbol_kind(function)
    inputs = {name: kind.sym(name, function.sparsity_in(name)) for name in function.name_in()}
    inputs["q"] = kind.sym("q", function.numel_in("q") - count)
    p = kind.sym("p", count)
    values = inputs | {"q": ca.vertcat(inputs["q"], p)}
    moving = int(inputs["q"].numel())
    return _renamed(function, insert_parameters(inputs, p), values, moving)


def _renamed(
    function: ca.Function,
    inputs: Mapping[str, ca.SX],
    values: Mapping[str, ca.SX],
    moving: int | None = None,
) -> ca.Function:
    """Return a Function of other inputs.

    Args:
        function: to call.
        inputs: symbols by name.
        values: what the function is called with, by its own names.
        moving: size of configurations among the outputs, without parameters; None: as they are.
    """
    outputs = function(**values)
    if NEXT in outputs and moving is not None:
        outputs[NEXT] = outputs[NEXT][:moving, 0]
    names = function.name_out()
    scalar = {"cse": True} if function.is_a("SXFunction") else {}
    return ca.Function(
        function.name(),
        [*inputs.values()],
        [outputs[name] for name in names],
        [*inputs],
        names,
        {"allow_duplicate_io_names": True} | scalar,  # p of parameters, and p of a position
    )


def insert_parameters(inputs: Mapping[str, Sym], p: Sym) -> dict[str, Sym]:
    """Return the inputs with p at its place: before t and mask."""
    first = {name: symbol for name, symbol in inputs.items() if name not in BEFORE}
    last = {name: symbol for name, symbol in inputs.items() if name in BEFORE}
    return first | {"p": p} | last


def configuration_of(symbols: Mapping[str, Sym]) -> Sym:
    """Return q with p behind it, of inputs by name."""
    return ca.vertcat(symbols["q"], symbols["p"]) if "p" in symbols else symbols["q"]


def with_constants_of(pose: Sym, q: Sym) -> Sym:
    """Return a pose of the joints with the parameters that a configuration has behind it."""
    return ca.vertcat(pose, q[pose.numel() :, 0])


def of_configuration(function: ca.Function, q: ca.SX) -> ca.Function:
    """Return a Function of the pose of the joints as one of a configuration with parameters.

    Args:
        function: (q) → one output, of either size.
        q: (nq,) symbols, parameters included.
    """
    if function.numel_in(0) == q.numel():
        return function
    value = function(q[: function.numel_in(0), 0])
    return ca.Function(function.name(), [q], [value], ["q"], function.name_out())


def fixed(function: ca.Function, p: Array) -> ca.Function:
    """Return a Function with its input p at these numbers."""
    if "p" not in function.name_in():
        return function
    kind = symbol_kind(function)
    inputs = {
        name: kind.sym(name, function.sparsity_in(name))
        for name in function.name_in()
        if name != "p"
    }
    return _renamed(function, inputs, inputs | {"p": kind(ca.DM(p))})


def symbol_kind(function: ca.Function) -> type[ca.SX]:
    """Return `ca.SX` for a Function of scalars, else `ca.MX`."""
    return ca.SX if function.is_a("SXFunction") else cast(type[ca.SX], ca.MX)


def parameter_values(
    parameters: Parameters, changed: Mapping[str, ArrayLike] | None = None
) -> Array:
    """Return p (np,) with these parameters changed, the others as in the model.

    Args:
        parameters: of the system.
        changed: numbers by name, of a parameter ("body:forearm:com") or of one of its entries
            ("body:forearm:com.x").

    Raises:
        UnknownNameError: no such parameter; the message lists those there are.
        ShapeError: a wrong number of entries.
    """
    p, slices = parameters.values, parameters.slices
    places = {name: slice(i, i + 1) for i, name in enumerate(parameters.names)} | slices
    for name, value in (changed or {}).items():
        require_name("parameter", name, list(places))
        place = places[name]
        numbers = np.atleast_1d(real_array(name, value)).ravel()
        if len(numbers) != place.stop - place.start:
            raise ShapeError(
                f"parameter '{name}' has {len(numbers)} entries, expected "
                f"{place.stop - place.start}"
            )
        p[place] = numbers
    return p


def is_physical(parameters: Parameters, p: Sym) -> Sym:
    """Return whether p is finite, above its least values, and its inertias those of bodies.

    Finite, not small: the units of p are the user's, and stiffness in g/s² is a million times that
    in kg/s².

    A rotational inertia I about the centre of mass belongs to a distribution of mass where
    `E = ½ trace(I) 1 - I`, its second moment, is positive semidefinite; the triangle inequality of
    the principal moments says the same. A mass that the model has is more than zero.

    Args:
        parameters: of the system.
        p: (np,) numbers or symbols.
    """
    bounded = ca.sum1(ca.fabs(p)) < np.inf  # false for NaN
    valid = ca.logic_and(bounded, ca.sum1(p >= ca.DM(parameters.least)) == p.numel())
    for item, place in zip(parameters.items, parameters.slices.values(), strict=True):
        if item.kind == "body" and item.attribute == "mass" and item.value[0] > 0:
            valid = ca.logic_and(valid, p[place.start] > 0)
        if item.kind in ("mocap", "site") and item.attribute == "quat":
            valid = ca.logic_and(valid, ca.sumsqr(p[place]) >= LEAST_MEASURED2)
        if item.kind == "body" and item.attribute == "inertia":
            own = _is_inertia(ca.DM(item.value))
            if bool(own):  # MuJoCo's `balanceinertia` and its check can be switched off
                valid = ca.logic_and(valid, _is_inertia(p[place]))
    return valid


def not_physical(parameters: Parameters, p: Array) -> list[str]:
    """Return `name = value` of each parameter that no mechanism has."""
    wrong = []
    for item, place in zip(parameters.items, parameters.slices.values(), strict=True):
        own = p[place]
        if not bool(is_physical(Parameters((item,)), ca.DM(own))):
            text = ", ".join(f"{number:g}" for number in own)
            wrong.append(f"{item.name} = {text}" if own.size == 1 else f"{item.name} = [{text}]")
    return wrong


def _is_inertia(entries: Sym) -> Sym:
    """Return whether (xx, yy, zz, xy, xz, yz) is the inertia of a distribution of mass."""
    xx, yy, zz, xy, xz, yz = (entries[k] for k in range(6))
    half = (xx + yy + zz) / 2
    a, b, c, d, e, f = half - xx, half - yy, half - zz, -xy, -xz, -yz
    least = -INERTIA_TOL * ca.fabs(half)
    minors = (
        (a, 1), (b, 1), (c, 1),
        (a * b - d * d, 2), (a * c - e * e, 2), (b * c - f * f, 2),
        (a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e), 3),
    )  # fmt: skip
    signs = [value >= least * ca.fabs(half) ** (degree - 1) for value, degree in minors]
    return ca.sum1(ca.vertcat(*signs)) == len(minors)
