"""Frames at which two convex geoms touch, as `FrameFunctions`.

The origin p is half way between the surfaces. The axes are those of the contact: n from the first
geom to the second, and two tangents. The Jacobian is that of the material of the second body less
that of the first one at this point, world axes,

    J v = (v_2 + ω_2 × (p - p_2)) - (v_1 + ω_1 × (p - p_1)) above ω_2 - ω_1,

and the bias is the rate of `J v`, in which p moves over both surfaces. `J a + J̇ v = 0` of the upper
rows keeps bodies that touch from slipping, whether they roll or not. `J v` is zero then, and it
makes no difference that the axes of the contact turn.
"""

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.description import Frame, RigidTree
from mbcasadi.model import geometry
from mbcasadi.system.frames import Array, Carrier, FrameFunctions
from mbcasadi.system.geom_pairs import touching_pairs
from mbcasadi.system.geometry_contacts import GeometryContact, contact_of_pair

UNTURNED = np.array([1.0, 0.0, 0.0, 0.0])


def convex_pairs(tree: RigidTree) -> dict[str, GeometryContact]:
    """Return the contacts of all pairs of geoms that are no planes, by their names."""
    contacts = (
        contact_of_pair(tree, pair, None)
        for pair in touching_pairs(tree)
        if all(geometry.summands(geom) is not None for geom in (pair.first, pair.second))
    )
    return {contact.name: contact for contact in contacts}


def pair_frame(contact: GeometryContact) -> FrameFunctions:
    """Build the Functions of the frame at which two convex geoms touch."""
    tree = contact.tree
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    _, point, normal = contact.gap(q)
    R = geometry.axes_of_normal(normal).T
    ends = [Frame("", "body", geom.body, np.zeros(3), UNTURNED) for geom in contact.geoms]
    turning = [model.frame_jacobian(tree, end, q)[3:, :] for end in ends]
    turned = [model.frame_bias(tree, end, q, v)[3:] for end in ends]
    J = ca.vertcat(contact.jacobian(q), turning[1] - turning[0])
    bias = ca.vertcat(contact.bias(q, v), turned[1] - turned[0])
    expressions = {
        "pose": ([q], {"p": point, "R": R}),
        "jacobian": ([q], {"J": J}),
        "velocity": ([q, v], {"velocity": J @ v}),
        "bias": ([q, v], {"J_dot_v": bias}),
    }
    functions = {
        key: ca.Function(
            f"pair_{key}",
            inputs,
            [ca.densify(x) if key != "jacobian" else ca.sparsify(x) for x in outputs.values()],
            ["q", "v"][: len(inputs)],
            [*outputs],
            {"cse": True},
        )
        for key, (inputs, outputs) in expressions.items()
    }
    return FrameFunctions(name=contact.name, **functions, attitude=None, carrier=_carrier(contact))


def _carrier(contact: GeometryContact) -> Carrier:
    """Return the second body; the frame is the only one of its kind there."""

    def frame_at(_: Array) -> FrameFunctions:
        return pair_frame(contact)

    root = contact.tree.bodies[contact.geoms[1].body].weld_root
    return Carrier(root, np.zeros(3), frame_at, ("pair", contact.name))
