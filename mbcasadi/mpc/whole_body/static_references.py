"""Actuator forces and controls that carry a robot in its setpoint, on the feet that stand.

The forces are those of `static_load`: the least on the feet that balance the weight g. What they do
not balance, in flight or while it tips over, lets the robot fall as it stands, its joints at rest.
A sole pushes at all of its points, so that feet at equal places carry equal shares whatever rows
hold them. Loops, and springs that the law holds, carry what they have to. Where the setpoint is q0
turned about the normal of the ground by an angle ψ,

    g = g_n + cos ψ g_c + sin ψ g_s - Tᵀ d

in coordinates turned back by T, with a force d that the model lacks. On level ground g_c and g_s
are zero. A setpoint with a shift of its base has other joints, and g is evaluated there: with the
load of q0 instead, a base that is to be over one foot would be pulled back to the middle.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.control.inverse_dynamics.parts.rigid_springs import RigidSprings, spring_map
from mbcasadi.control.safe_output.static_load import Array, carrying, static_forces
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.description import Contact
from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.mpc.ocp.stage import DISTURBANCE
from mbcasadi.mpc.whole_body.contact_mask import contacts_on, mask_of_contacts
from mbcasadi.mpc.whole_body.default_cost import FORCE_REFERENCE
from mbcasadi.system import System, evaluate
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import require_ranges

ROUNDING = 1e-9
"""Share of the largest entry below which a number at q0 is zero."""


class _Pose(NamedTuple):
    """A robot at rest: g (nv, 1), M, moments of actuators, rows of springs, loops and points."""

    load: Array
    M: Array
    B: Array
    G: Array
    gain: Array
    bias: Array


def static_references(
    system: System,
    contacts: Sequence[Contact],
    q0: Array,
    normal: Array,
    period: float,
    *,
    shift: bool = False,
    springs: RigidSprings | None = None,
) -> ca.Function:
    """Return (q, mask, disturbance) → (forces, controls) of the actuators, (nu,) each.

    The setpoint q is q0, moved and turned about the normal; with a shift it is any pose.

    Args:
        system: with its contacts as rows; activations settle within a period.
        contacts: those of the rows.
        q0: (nq,) pose in which it stands.
        normal: (3,) of the ground.
        period: s.
        shift: whether the base of the setpoint is shifted over its feet.
        springs: that the law holds.
    """
    q, mask = ca.SX.sym("q", system.nq), ca.SX.sym("mask", system.nc)
    d = ca.SX.sym("disturbance", system.nv)
    held = np.zeros((0, system.nv)) if springs is None else spring_map(system, springs)
    equations = _rest_fun(system, contacts, period, held)
    here = _Pose(*(x.full() for x in equations(q0)))
    if shift:
        load, M, B, G, _, bias = equations(q)
        load = ca.SX(load) - d
    else:
        load = _turned_load(system, equations, (q, q0), normal, d)
        M, B, G, bias = *(_constant(x) for x in (here.M, here.B, here.G)), ca.SX(ca.DM(here.bias))
    inverse = np.asarray(np.linalg.inv(here.M), dtype=float)
    p = static_forces(
        load,
        M,
        B,
        ca.diag(ca.vertcat(ca.SX.ones(len(held)), _on(system, contacts, mask))) @ G,
        carrying(_seen(here.G, inverse), np.arange(len(here.G)) >= len(here.G) - 3 * len(contacts)),
        _seen(here.B.T, inverse),
        falls=True,
    )
    gain = here.gain.ravel()
    per_force = np.divide(1.0, gain, out=np.zeros_like(gain), where=gain != 0)
    u = ca.DM(per_force) * (p - bias)
    outputs = [ca.densify(p), ca.densify(u)]
    inputs = {"q": q, "mask": mask, DISTURBANCE: d}
    names = ["forces", "controls"]
    return ca.Function("static", [*inputs.values()], outputs, [*inputs], names, {"cse": True})


def _turned_load(
    system: System,
    equations: ca.Function,
    poses: tuple[ca.SX, Array],
    normal: Array,
    d: ca.SX,
) -> ca.SX:
    """Return the load (nv, 1) at q0 turned about the normal, in coordinates turned back.

    Args:
        system: the robot.
        equations: from `_rest_fun`.
        poses: the setpoint, and q0.
        normal: (3,) of the ground.
        d: (nv,) force that the model lacks.
    """
    from scipy.spatial.transform import Rotation

    (q, q0), joint = poses, trunk_joint(system)
    dof, place = joint.dof, joint.qpos + 3
    angles = (0.0, np.pi / 2, np.pi)
    loads = [equations(_turned(system, q0, normal, angle))[0].full() for angle in angles]
    ahead, side, back = (
        _linear_turned(load, dof, Rotation.from_rotvec(-angle * normal).as_matrix())
        for angle, load in zip(angles, loads, strict=True)
    )
    middle = (ahead + back) / 2
    c, s = _turn(q[place : place + 4], q0[place : place + 4], normal)
    load = _constant(middle) + c * _constant((ahead - back) / 2) + s * _constant(side - middle)
    own, n = d[dof : dof + 3], ca.DM(normal)
    along, across = n * ca.dot(n, own), ca.cross(n, own)
    load -= d
    load[dof : dof + 3] += own - (along + c * (own - along) - s * across)
    return load


def with_static_references(ocp: OptimalControlProblem, static: ca.Function, ref: ca.MX) -> ca.MX:
    """Return p of all samples, one after the other, with references of actuators at rest.

    Those slices that the problem has are filled: controls of the setpoint, actuator forces.
    """
    places, N = slot_slices(ocp.slots), ocp.horizon
    P = ca.reshape(ref, ref.numel() // (N + 1), N + 1)
    taken = [P[places[name], :] for name in ("setpoint.q", "mask", DISTURBANCE)]
    at_rest = static.map(N + 1).call(taken)
    for name, value in zip((FORCE_REFERENCE, "setpoint.u"), at_rest, strict=True):
        if name in places:
            P[places[name], :] = value
    return ca.vec(P)


def _turn(quaternion: ca.SX, start: Array, normal: Array) -> tuple[ca.SX, ca.SX]:
    """Return cosine and sine of the angle about the normal from one quaternion to another."""
    w, axis = float(start[0]), ca.DM(start[1:])
    size = ca.dot(quaternion, quaternion)
    real = quaternion[0] * w + ca.dot(quaternion[1:], axis)
    imaginary = w * quaternion[1:] - quaternion[0] * axis - ca.cross(quaternion[1:], axis)
    about = ca.dot(ca.DM(normal), imaginary)
    length = ca.fmax(real**2 + about**2, ROUNDING * size)
    return (real**2 - about**2) / length, 2 * real * about / length


def _on(system: System, contacts: Sequence[Contact], mask: ca.SX) -> ca.SX:
    """Return which rows of loops and of points are on."""
    each = [ca.repmat(on, 3, 1) for on in ca.vertsplit(contacts_on(system, contacts, mask))]
    return ca.vertcat(mask[_loops(system, contacts)], *each)


def _loops(system: System, contacts: Sequence[Contact]) -> list[int]:
    """Return the rows that belong to no contact."""
    on = mask_of_contacts(system, contacts, ca.DM.zeros(len(contacts))).full().ravel()
    rows: list[int] = np.flatnonzero(on).tolist()
    return rows


def _rows(system: System, contacts: Sequence[Contact], q: ca.SX) -> ca.SX:
    """Return the rows of loops, and three for each contact: along its normal and tangents."""
    at = {"q": q, "v": ca.SX(system.nv, 1), "t": ca.SX(0)}
    own = evaluate(system.loop_jacobian, at)
    points = []
    for contact in contacts:
        axes = ca.DM(contact_axes(np.asarray(contact.normal, dtype=float)))
        frame = system.frame(contact.frame, contact.kind)
        points.append(axes @ ca.SX(frame.jacobian(q))[:3, :])
    return ca.vertcat(own[_loops(system, contacts), :], *points)


def _rest_fun(
    system: System, contacts: Sequence[Contact], period: float, held: Array
) -> ca.Function:
    """Return (q) → the fields of `_Pose`; the first rows hold springs."""
    q, still = ca.SX.sym("q", system.nq), ca.SX(system.nv, 1)
    actuators = actuator_model(system, require_ranges(system, None, None), period, q, still, None)
    load = system.bias_force(q, still) - system.passive_force(q, still) - actuators.rest
    rows = ca.vertcat(ca.SX(ca.DM(held)), _rows(system, contacts, q))
    outputs = [load, system.mass_matrix(q), actuators.moment, rows]
    return ca.Function("rest", [q], [*outputs, actuators.gain, actuators.bias])


def _turned(system: System, q0: Array, normal: Array, angle: float) -> Array:
    """Return a pose turned about the normal of the ground."""
    from scipy.spatial.transform import Rotation

    place, q = trunk_joint(system).qpos, q0.copy()
    turn = Rotation.from_rotvec(angle * normal)
    quat = turn * Rotation.from_quat(q[place + 3 : place + 7], scalar_first=True)
    q[place + 3 : place + 7] = quat.as_quat(scalar_first=True)
    return q


def _linear_turned(force: Array, dof: int, turn: Array) -> Array:
    """Return generalised forces (nv, 1) with the force on the free joint turned."""
    turned = force.copy()
    turned[dof : dof + 3] = turn @ turned[dof : dof + 3]
    return turned


def _seen(rows: Array, inverse: Array) -> Array:
    """Return the inertia that each row (m, nv) sees; never infinite."""
    mobility = np.einsum("ij,jk,ik->i", rows, inverse, rows)
    return np.asarray(1 / np.maximum(mobility, ROUNDING * mobility.max(initial=0.0) or 1.0))


def _constant(matrix: Array) -> ca.SX:
    """Return a matrix of numbers without rounding errors as entries."""
    least = ROUNDING * np.abs(matrix).max(initial=0.0)
    return ca.sparsify(ca.SX(ca.DM(np.where(np.abs(matrix) > least, matrix, 0.0))))
