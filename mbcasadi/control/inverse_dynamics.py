"""Inverse dynamics within torque limits and friction cones, for any constrained mechanism."""

from collections.abc import Sequence
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control import guard
from mbcasadi.control import setup as checks
from mbcasadi.control.describe import describe
from mbcasadi.control.inspection import inspection_fun, monitor_fun
from mbcasadi.control.setup import FALLBACKS, INTERNAL_FORCES, Setup
from mbcasadi.control.solution import CondensedQP, InverseDynamicsSolution
from mbcasadi.control.solver import candidate_fun, controller_fun, require_solver
from mbcasadi.control.stages import WORDS, Stages, make_stages
from mbcasadi.control.tasks import Slot, Task
from mbcasadi.description import Contact, Controller
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.system import System

Array = NDArray[np.float64]

RANK_TOL = 1e-3
"""A constraint direction weaker than this, relative to its joints, is dropped. The redundant rows
of a spatial loop that a plant leaves open by a gap are as weak as the gap over a link's length,
1e-3 with MuJoCo's default softness; if they were kept, the loop could not move. A true direction
that is this weak needs forces a thousand times larger than others."""


class InverseDynamicsQP:
    """`min Σ |J a + c - a_des|²_W` over what motors, loops, passive joints and contacts allow.

    The law solves, at every tick and for any rank of its constraints,

        M a + h = f_passive + actuator force + Aᵀ lam + J_cᵀ f,   A a + c = 0,   J_c a + c_c = 0

    for the controls u, with actuator forces and controls within their limits and every contact
    force f inside an inner friction pyramid. Acceleration, multipliers and dependent rows are
    eliminated first (`condense.py`); the remaining QP has inequalities only, and its solution
    is checked on the original equations before it is used (`check.py`).

    Its Function is `(q, v, [act], ref, mask, z) → (u, z_next, status, residual)`:

    - `ref`: the tasks' references; `reference` names its slices, `reference_at(q)` holds q.
    - `mask`: one entry for each contact, then one for each equality constraint, 1 for on. It
      switches rows of the same problem: sizes do not change.
    - `z`: the active set, and the last u with `fallback="hold"`. Any content is accepted.
    - `status`: 0 solved and verified; 1 feasible, not optimal; 2 infeasible; 3 bad input (NaN,
      infinity); 4 failed check. From 2 on, u is the fallback.
    - `residual`: (5,) dynamics, constraint, primal, stationarity, complementarity, relative.

    u never leaves its limits, whatever the inputs are. `export_c` turns the law into C.

    Args:
        system: the mechanism.
        tasks: the desired motions, `PostureTask`, `FrameTask` or your own `Task`.
        contacts: points that push on the world, each with a friction cone.
        torque_weight: r_p of `½ r_p |p - p_ref|²` on the actuator forces p (N or N m). Positive:
            it selects among forces that cause no motion, and biases the tasks by about
            `r_p / (T² W)`, where T is acceleration per force.
        torque_reference: read `p_ref` from the slice "torque" of `ref`; else it is zero.
        internal_forces: "body": the load of several points on one body is distributed freely
            within their cones; "none": by the least squares of their forces.
        internal_force_weight: r_w of `½ r_w |w|²` on these internal forces, positive.
        force_weight: r_f of `½ r_f |f - f_ref|²` on all contact forces, zero for none.
        force_reference: read `f_ref` (n, t1, t2 of each contact) from the slice "force" of
            `ref`; else it is zero. It needs a `force_weight`.
        ctrl_limits, force_limits: (nu, 2) limits of u, and of the actuator forces, instead of
            the model's. Ranges of summed forces on joints and tendons always hold.
        stabilisation: ω, 1/s: loops obey `A a + c + 2 ω A v + ω² phi = 0`.
        contact_damping: 1/s: active contacts obey `J_c a + c_c + damping J_c v = 0`.
        rank_tol: relative size below which a constraint direction is dropped.
        tolerance: bound of each residual for a solution to be accepted.
        fallback: safe output: "zero" actuator force within limits, or "hold" the last u.
        fallback_law: a Function (q, v, ref, mask) → (u) in place of `fallback`.
        period: sample time, s.
        solver: "daqp", or "qrqp", for the Function in Python; the C export uses DAQP.
        name: a C identifier.

    Raises:
        ProblemError: tasks, contacts, limits or options that contradict themselves.
        UnknownNameError: a frame or joint that the model does not have.
        SolverError: the solver is not available.
    """

    def __init__(
        self,
        system: System,
        tasks: Sequence[Task],
        contacts: Sequence[Contact] = (),
        *,
        torque_weight: float = 1e-4,
        torque_reference: bool = False,
        internal_forces: str = "body",
        internal_force_weight: float = 1e-4,
        force_weight: float = 0.0,
        force_reference: bool = False,
        ctrl_limits: ArrayLike | None = None,
        force_limits: ArrayLike | None = None,
        stabilisation: float = 0.0,
        contact_damping: float = 0.0,
        rank_tol: float = RANK_TOL,
        tolerance: float = 1e-6,
        fallback: str = "zero",
        fallback_law: ca.Function | None = None,
        period: float = 1e-3,
        solver: str = "daqp",
        name: str = "inverse_dynamics",
    ) -> None:
        checks.require_system(system)
        checks.require_numbers(
            force_weight=force_weight, stabilisation=stabilisation, contact_damping=contact_damping
        )
        checks.require_positive(
            torque_weight=torque_weight,
            internal_force_weight=internal_force_weight,
            rank_tol=rank_tol,
            tolerance=tolerance,
            period=period,
        )
        checks.require_choice("fallback", fallback, FALLBACKS)
        checks.require_choice("internal_forces", internal_forces, INTERNAL_FORCES)
        require_solver(solver)
        if not name.isidentifier():
            raise ProblemError(f"name {name!r}; expected a C identifier")
        tasks, contacts = tuple(tasks), tuple(contacts)
        gains = checks.require_tasks(tasks, system)
        slots = [slot for task in tasks for slot in task.slots(system)]
        if torque_reference:
            slots.append(Slot("torque", system.actuator_names, ("N or N m",) * system.nu))
        if force_reference:
            slots.append(checks.force_slot(contacts, force_weight))
        reference = checks.lay_out(slots)
        equality_names, equality_sizes = checks.equality_groups(system)
        self.system = system
        self.name = name
        self.setup = Setup(
            system=system,
            tasks=tasks,
            gains=gains,
            contacts=contacts,
            grips=checks.require_contacts(contacts, system),
            contact_names=checks.unique([contact.frame for contact in contacts]),
            equality_names=equality_names,
            equality_sizes=equality_sizes,
            slots=tuple(slots),
            reference=reference,
            torque_slice=reference.get("torque") if torque_reference else None,
            force_slice=reference.get("force") if force_reference else None,
            ranges=checks.require_ranges(system, ctrl_limits, force_limits),
            internal=internal_forces == "body",
            torque_weight=torque_weight,
            internal_force_weight=internal_force_weight,
            force_weight=force_weight,
            stabilisation=stabilisation,
            contact_damping=contact_damping,
            rank_tol=rank_tol,
            tolerance=tolerance,
            period=period,
            fallback="law" if fallback_law is not None else fallback,
            law=fallback_law,
        )
        sizes = {"q": system.nq, "v": system.nv, "ref": self.setup.nref}
        sizes["mask"] = len(self.setup.mask_names)
        checks.require_law(fallback_law, sizes, system.nu)
        self.solver = solver
        self.stages: Stages = make_stages(self.setup)
        self.function: ca.Function = controller_fun(name, self.stages.parts, solver)

    @property
    def reference(self) -> dict[str, slice]:
        """Slices of `ref`, by `<task>.<quantity>`."""
        return dict(self.setup.reference)

    @property
    def mask_names(self) -> tuple[str, ...]:
        """Name of each entry of `mask`: contacts, then equality constraints."""
        return self.setup.mask_names

    @property
    def row_names(self) -> tuple[str, ...]:
        """Name of each inequality of the QP."""
        return self.stages.row_names

    @property
    def z0(self) -> Array:
        """Initial state: nothing active, the control nearest to zero."""
        z0 = np.zeros(self.function.numel_in("z"))
        if self.setup.fallback == "hold":
            low, high = self.stages.u_min, self.stages.u_max
            z0[-self.system.nu :] = np.clip(0.0, low, high)
        return z0

    @property
    def period(self) -> float:
        """Sample time, s."""
        return self.setup.period

    @cached_property
    def controller(self) -> Controller:
        """The controller as data, for export, plant and report."""
        monitor = monitor_fun(self._candidate, self._inspect)
        return describe(self.setup, self.stages, self.function, self.z0, monitor)

    @cached_property
    def _inspect(self) -> ca.Function:
        return inspection_fun(self.setup)

    @cached_property
    def _candidate(self) -> ca.Function:
        return candidate_fun(self.stages.parts, self.solver)

    def reference_at(self, q: ArrayLike) -> Array:
        """Return the reference (nref,) that holds the configuration q at rest."""
        return guard.reference_at(self.setup, column("q", q, self.system.nq))

    def problem(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        act: ArrayLike | None = None,
    ) -> CondensedQP:
        """Return the QP at a state as data.

        Args:
            q, v, ref, mask, act: as in `solve`.

        Raises:
            ShapeError: a wrong shape.
        """
        found = self._inspect(**self._inputs(q, v, ref, mask, act))
        numbers = {key: np.array(out) for key, out in found.items()}
        return CondensedQP.of(numbers, self.row_names)

    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        z: ArrayLike | None = None,
        act: ArrayLike | None = None,
    ) -> InverseDynamicsSolution:
        """Return the controller's output at a state, with the solution of its QP.

        Args:
            q: (nq,) configuration.
            v: (nv,) velocity.
            ref: (nref,) reference; default: rest at q.
            mask: one for each contact and equality constraint that is on; default: all on.
            z: (nz,) state; default: `z0`.
            act: (na,) activations, where the system has them; default: zero.

        Raises:
            ShapeError: a wrong shape. NaN and infinity do not raise: they give status 3.
        """
        inputs = self._inputs(q, v, ref, mask, act)
        z = self.z0 if z is None else column("z", z, self.z0.size, finite=False)
        outputs = {key: np.array(out).ravel() for key, out in self.function(**inputs, z=z).items()}
        x = self._candidate(**inputs, z=z)["x"]
        found = {key: np.array(out) for key, out in self._inspect(**inputs, x=x).items()}
        code = int(outputs["status"][0])
        return InverseDynamicsSolution(
            u=outputs["u"],
            z_next=outputs["z_next"],
            status=code,
            word=WORDS[code],
            residual=outputs["residual"],
            problem=CondensedQP.of(found, self.row_names),
            a=found["a"].ravel(),
            lam=found["lam"].ravel(),
            contact_forces=found["contact_force"].reshape(-1, 3),
            p=found["p"].ravel(),
            kept=found["kept"].ravel(),
            violations=found["violation"].ravel(),
        )

    def _inputs(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None,
        mask: ArrayLike | None,
        act: ArrayLike | None,
    ) -> dict[str, Array]:
        """Return the checked inputs by name, defaults filled in."""
        system, setup = self.system, self.setup
        q = column("q", q, system.nq, finite=False)
        if ref is None:
            ref = guard.reference_at(setup, q)
        mask = np.ones(len(self.mask_names)) if mask is None else mask
        inputs = {
            "q": q,
            "v": column("v", v, system.nv, finite=False),
            "ref": column("ref", ref, setup.nref, finite=False),
            "mask": column("mask", mask, len(self.mask_names), finite=False),
        }
        if system.na:
            act = np.zeros(system.na) if act is None else act
            inputs["act"] = column("act", act, system.na, finite=False)
        return inputs
