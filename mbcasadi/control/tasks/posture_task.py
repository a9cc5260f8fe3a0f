"""Joint-space task."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Array, Gain, Residual, Slot, Task, require_state
from mbcasadi.description.tree import DOF_SIZE, QPOS_SIZE, Joint
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.system import System
from mbcasadi.system.coordinates import COORDINATES, RATE_UNITS, RATES, UNITS, per, qualified_name
from mbcasadi.system.names_by_kind import require_name_of


@dataclass(frozen=True)
class PostureTask(Task):
    """Joints track `posture.q`, with `posture.v` and `posture.a` fed forward.

    `error = q_ref ⊖ q` on the manifold: ball and free joints take quaternion references (their
    rates are MuJoCo's: angular velocity in the body frame).

    Attributes:
        joints: names; None for all joints but free ones (all coordinates of a system that is
            given by equations).
        kp, kd: gains, 1/s² and 1/s; kd is critical unless given.
        weight: of the squared acceleration error, a number or one for each row.
        name: prefix of the reference's slices.
    """

    joints: tuple[str, ...] | None = None
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0
    name: str = "posture"

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return the joints' names, with a suffix for each rate of ball and free joints."""
        if system.tree is None:
            return tuple(system.coordinate_names[i] for i in self.rates(system))
        return tuple(
            qualified_name(joint.name, rate)
            for joint in self._chosen(system)
            for rate in RATES[joint.kind]
        )

    @checked
    def units(self, system: System) -> tuple[str, ...]:
        """Return m or rad for each row."""
        if system.tree is None:
            return ("",) * system.nv
        return tuple(unit for joint in self._chosen(system) for unit in RATE_UNITS[joint.kind])

    @checked
    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slices q, v and a."""
        rates = self.components(system)
        if system.tree is None:
            names = system.coordinate_names
            units, rate_units = ("",) * len(names), ("",) * len(rates)
        else:
            chosen = self._chosen(system)
            names = tuple(qualified_name(j.name, c) for j in chosen for c in COORDINATES[j.kind])
            units = tuple(unit for j in chosen for unit in UNITS[j.kind])
            rate_units = tuple(unit for j in chosen for unit in RATE_UNITS[j.kind])
        return (
            Slot(f"{self.name}.q", names, units),
            Slot(f"{self.name}.v", rates, tuple(per(unit, "s") for unit in rate_units)),
            Slot(f"{self.name}.a", rates, tuple(per(unit, "s²") for unit in rate_units)),
        )

    @checked
    def residual(
        self,
        system: System,
        q: ca.SX,
        v: ca.SX,
        ref: Mapping[str, ca.SX],
    ) -> Residual:
        """Return the chosen joints' errors, and the selection of their rates.

        Args:
            system, q, v, ref: as in `Task.residual`.
        """
        require_state(self, system, q, v, ref)
        dofs = self.rates(system)
        q_ref = desired_pose(self, system, q, ref["q"])
        error = system.difference(q, q_ref)[dofs]
        J = ca.SX(ca.DM(ca.Sparsity.triplet(len(dofs), system.nv, list(range(len(dofs))), dofs), 1))
        target = system.difference(self._origin(system), q_ref)[dofs]
        return Residual(J, ca.SX(len(dofs), 1), error, target, ref["v"], ref["a"])

    @checked
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:
        """Return the chosen joints' present coordinates, at rest."""
        rest = np.zeros(len(self.rates(system)))
        pose = column("q", q, system.nq)
        return {"q": pose[self.coordinates(system)], "v": rest, "a": rest}

    def _chosen(self, system: System) -> tuple[Joint, ...]:
        assert system.tree is not None
        known = {joint.name: joint for joint in system.tree.joints}
        if isinstance(self.joints, str):
            raise ProblemError(
                f"{self.name}: joints = {self.joints!r}; expected names, [{self.joints!r}]"
            )
        if self.joints is None:
            return tuple(joint for joint in known.values() if joint.kind != "free")
        for name in self.joints:
            require_name_of(system, "joint", name, list(known))
        return tuple(known[name] for name in self.joints)

    @checked
    def rates(self, system: System) -> list[int]:
        """Return the places of the chosen joints' rates in v."""
        if system.tree is None:
            if self.joints is not None:
                raise ProblemError(
                    f"{self.name}: '{system.name}' is given by equations and has no joint names; "
                    "leave joints=None"
                )
            return list(range(system.nv))
        return [j.dof + k for j in self._chosen(system) for k in range(DOF_SIZE[j.kind])]

    @checked
    def coordinates(self, system: System) -> list[int]:
        """Return the places of the chosen joints' coordinates in q."""
        if system.tree is None:
            return self.rates(system)
        return [j.qpos + k for j in self._chosen(system) for k in range(QPOS_SIZE[j.kind])]

    def _origin(self, system: System) -> ca.DM:
        return ca.DM.zeros(system.nq) if system.tree is None else ca.DM(system.tree.q0)


def desired_pose(task: PostureTask, system: System, q: ca.SX, q_ref: ca.SX) -> ca.SX:
    """Return q (nq,) with the desired coordinates `q_ref` of the task's joints."""
    pose = ca.SX(q)
    for i, place in enumerate(task.coordinates(system)):
        pose[place] = q_ref[i]
    return pose
