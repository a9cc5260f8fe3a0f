"""Pinocchio's derivatives from Python, on a model that is built from the numbers of ours.

A call from Python costs about 0.5 to 1 µs beside the C++ code that it runs.
"""

import importlib
import importlib.util
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.dynamics_cases import Points
from bench.kernel_peers import WORLD, attach_bodies, weld_inertias
from mbcasadi.description import RigidTree

Array = NDArray[np.float64]

SUMS_AGREE = 1e-9  # relative, of the diagonal of M over slides and hinges
CALLS = 20

FIRST_WITH_DATA = 4
"""First version of Pinocchio that initialises the data of contacts with those of the model."""


class Pinocchio:
    """A model of Pinocchio with contacts of its bodies.

    Attributes:
        version: of the library.
        same: whether its inertia at a state is ours.
    """

    def __init__(self, tree: RigidTree, held: Mapping[str, Points]) -> None:
        """Build the model.

        Args:
            tree: the mechanism.
            held: points by the name of their body, in its frame; a body with several points is
                held in all six directions.
        """
        pin = importlib.import_module("pinocchio")

        self._pin, self.version = pin, pin.__version__
        self.model, places = _model(pin, tree)
        self.data = self.model.createData()
        self.contacts = []
        names = {body.name: i for i, body in enumerate(tree.bodies)}
        for name, positions in held.items():
            joint, pose = places[names[name]]
            whole = len(positions) > 1
            kind = pin.ContactType.CONTACT_6D if whole else pin.ContactType.CONTACT_3D
            at = pin.SE3(pose.R, pose.R @ np.mean(positions, axis=0) + pose.p)
            self.contacts.append(pin.RigidConstraintModel(kind, self.model, joint, at, pin.LOCAL))

    def inertia(self, tree: RigidTree, q: Array) -> float:
        """Return the sum of the diagonal of M over slides and hinges."""
        M = self._pin.crba(self.model, self.data, self._q(tree, q))
        return float(sum(M[j.dof, j.dof] for j in tree.joints if j.kind in ("slide", "hinge")))

    def inverse(self, tree: RigidTree, states: Array) -> Callable[[int], None]:
        """Return a call of the derivatives of inverse dynamics at a state."""
        given = self._split(tree, states)
        call, model, data = self._pin.computeRNEADerivatives, self.model, self.data
        return lambda k: call(model, data, *given[k])

    def forward(self, tree: RigidTree, states: Array) -> Callable[[int], None]:
        """Return a call of (constrained) forward dynamics and its derivatives at a state."""
        pin, model, data, given = self._pin, self.model, self.data, self._split(tree, states)
        if not self.contacts:
            call = pin.computeABADerivatives
            return lambda k: call(model, data, *given[k])
        held, held_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for contact in self.contacts:
            held.append(contact)
            held_data.append(contact.createData())
        new = int(self.version.split(".")[0]) >= FIRST_WITH_DATA
        pin.initConstraintDynamics(model, data, held, *([held_data] if new else []))

        def derivatives(k: int) -> None:
            pin.constraintDynamics(model, data, *given[k], held, held_data)
            pin.computeConstraintDynamicsDerivatives(model, data, held, held_data)

        return derivatives

    def _q(self, tree: RigidTree, q: Array) -> Array:
        """Return q with Pinocchio's order of quaternions, and angles from their reference."""
        out = np.array(q, float)
        for joint in tree.joints:
            row = joint.qpos + (3 if joint.kind == "free" else 0)
            if joint.kind in ("free", "ball"):
                out[row : row + 4] = out[[row + 1, row + 2, row + 3, row]]
            else:
                out[row] -= joint.ref
        return out

    def _split(self, tree: RigidTree, states: Array) -> list[tuple[Array, Array, Array]]:
        nq, nv = tree.nq, tree.nv
        return [
            (self._q(tree, x[:nq]), x[nq : nq + nv].copy(), x[nq + nv :].copy()) for x in states
        ]


def installed() -> bool:
    """Return whether Pinocchio is there."""
    return importlib.util.find_spec("pinocchio") is not None


def median_time(call: Callable[[int], None], states: int, rounds: int) -> float:
    """Return the median time of a call, s, over rounds of some calls."""
    times = []
    for k in range(rounds):
        start = time.perf_counter()
        for i in range(CALLS):
            call((k + i) % states)
        times.append((time.perf_counter() - start) / CALLS)
    return float(np.median(times))


def _model(pin: Any, tree: RigidTree) -> tuple[Any, list[tuple[int, Any]]]:
    """Return the model, and for each body the joint that carries it with its pose there."""
    model, carried, index = pin.Model(), attach_bodies(tree), {WORLD: 0}
    for j, parent, at in carried.joints:
        joint, placement = tree.joints[j], pin.SE3(at.R, at.p)
        kind = _joint_model(pin, joint.kind, np.asarray(joint.axis, float))
        index[j] = model.addJoint(index[parent], kind, placement, joint.name)
        mass, com, inertia = weld_inertias(carried.inertias.get(j, []))
        model.appendBodyToJoint(index[j], pin.Inertia(mass, com, inertia), pin.SE3.Identity())
    model.armature = np.array(tree.armature)
    model.gravity.linear = np.array(tree.gravity)
    return model, [(index[carrier], pose) for carrier, pose in carried.bodies]


def _joint_model(pin: Any, kind: str, axis: Array) -> Any:
    if kind == "free":
        return pin.JointModelFreeFlyer()
    if kind == "ball":
        return pin.JointModelSpherical()
    aligned = np.flatnonzero(axis == 1.0)
    if aligned.size:
        names = ("PX", "PY", "PZ") if kind == "slide" else ("RX", "RY", "RZ")
        return getattr(pin, f"JointModel{names[int(aligned[0])]}")()
    unaligned = "PrismaticUnaligned" if kind == "slide" else "RevoluteUnaligned"
    return getattr(pin, f"JointModel{unaligned}")(*axis)
