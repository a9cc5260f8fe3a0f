"""The numbers of a model with parameters in the place of some of them."""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.description import RigidTree
from mbcasadi.description.parameters import Parameters
from mbcasadi.system.model_numbers import ModelNumbers
from mbcasadi.system.parameter_attributes import ATTRIBUTES


def with_parameters(numbers: ModelNumbers, parameters: Parameters, p: Any) -> ModelNumbers:
    """Return the numbers with those of `p` in the place of the model's own.

    Args:
        numbers: of the model.
        parameters: where each entry of p belongs.
        p: (np,) numbers, or a column of SX.
    """
    places = parameters.slices
    for item in parameters.items:
        entries = tuple(p[i] for i in range(places[item.name].start, places[item.name].stop))
        attribute = ATTRIBUTES[item.kind, item.attribute]
        numbers = attribute.write(numbers, item.index, entries)
    return numbers


def numbers_at(numbers: ModelNumbers, parameters: Parameters, q: ca.SX) -> ModelNumbers:
    """Return the numbers with the parameters that are behind a configuration.

    Args:
        numbers: of a tree with constants.
        parameters: of the system; none: the numbers as they are.
        q: (nq,) configuration, parameters included.
    """
    if not len(parameters):
        return numbers
    return with_parameters(numbers, parameters, q[numbers.tree.nq_of_joints :, 0])


def with_constants(tree: RigidTree, values: np.ndarray) -> RigidTree:
    """Return a tree whose configurations have these numbers behind them."""
    return replace(
        tree,
        constants=len(values),
        q0=np.append(tree.q0, values),
        q_spring=np.append(tree.q_spring, values),
        keyframes={name: np.append(q, values) for name, q in tree.keyframes.items()},
    )
