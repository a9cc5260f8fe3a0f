"""A controller as data, for code generation, the plant and the report."""

from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.constraints import Contact


@dataclass(frozen=True)
class Signal:
    """One input or output of a controller.

    Attributes:
        name: name of the Function's input or output.
        components: one name for each row.
        units: one unit for each row ("" where there is none).
    """

    name: str
    components: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True)
class LeastDistanceStages:
    """The stages of a controller that solves one QP: before and after the solver.

    `build` turns the controller's inputs into the least-distance problem

        min ½ xᵀx   subject to   lba <= A_qp x <= uba,

    and `finish` turns its solution into the controller's outputs. A QP with a positive
    definite Hessian `H = K Kᵀ` takes this form by `x = Kᵀ y + K⁻¹ g` (whitening).

    With `prepare` a tick has two phases: `prepare` computes everything that needs no measurement,
    and only `build`, the solver and `finish` run between measurement and control.

    Attributes:
        build: (inputs of the controller[, prepared]) → (A_qp, lba, uba, active0, carry): (m, n),
            (m,), (m,); `active0` (m,) is the warm start, -1 at the lower bound, 1 at the upper,
            else 0; `carry` (any size, 1) passes numbers on to `finish`.
        finish: (inputs of the controller, [prepared,] carry, x, lam_a, active, flag) → (outputs of
            the controller). `lam_a` (m,) are multipliers in CasADi's sign (positive at the upper
            bound); `active` (m,) is the final active set, as `active0`; `flag` is 1 where the
            solver claims an optimum and 0 elsewhere. `finish` trusts none of them.
        prepare: (some inputs of the controller, in its order, none of them measured) →
            (prepared[, A_qp]), or None. `prepared` (any size, 1) is one more input of `build` and
            `finish`; where it holds NaN, `finish` returns status 3 and the safe output. An
            `A_qp` that is known before the measurement is an output of `prepare`, not of `build`.
    """

    build: ca.Function
    finish: ca.Function
    prepare: ca.Function | None = None

    @property
    def posing(self) -> ca.Function:
        """The Function that gives `A_qp`: `prepare` or `build`."""
        prepared = self.prepare is not None and "A_qp" in self.prepare.name_out()
        return self.prepare if self.prepare is not None and prepared else self.build

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return int(self.posing.size2_out("A_qp"))

    @property
    def m(self) -> int:
        """Number of two-sided rows."""
        return int(self.posing.size1_out("A_qp"))

    @property
    def inputs(self) -> dict[str, ca.Sparsity]:
        """Patterns of the controller's inputs, by name."""
        names = [name for name in self.build.name_in() if name != "prepared"]
        return {name: self.build.sparsity_in(name) for name in names}

    def problem(self) -> ca.Function:
        """Return (inputs of the controller) → (A_qp, lba, uba, active0, carry, prepared).

        `prepared` has no rows where there is one phase only.
        """
        given = {name: ca.MX.sym(name, pattern) for name, pattern in self.inputs.items()}
        found: dict[str, ca.MX] = {}
        if self.prepare is not None:
            known = [given[name] for name in self.prepare.name_in()]
            found = dict(zip(self.prepare.name_out(), self.prepare.call(known), strict=True))
        extra = [found["prepared"]] if found else []
        built = self.build.call([*given.values(), *extra])
        found |= dict(zip(self.build.name_out(), built, strict=True))
        found.setdefault("prepared", ca.MX(0, 1))
        names = ["A_qp", "lba", "uba", "active0", "carry", "prepared"]
        outputs = [found[name] for name in names]
        return ca.Function("problem", list(given.values()), outputs, list(given), names)


@dataclass(frozen=True)
class Limits:
    """Bounded quantities of a law beside its controls, for reports.

    Attributes:
        value: any of the controller's inputs, `u` (nu,) that acts on the measured state and
            `u_last` (nu,) that acted in the period before, by name → (value), (m,).
        signal: name, rows and units of the value.
        lower, upper: (m,) bounds, infinite where there are none.
        soft: (m,) whether the row may be violated with slack.
    """

    value: ca.Function
    signal: Signal
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    soft: tuple[bool, ...]


@dataclass(frozen=True)
class Controller:
    """A discrete-time control law with explicit state.

    Attributes:
        name: a C identifier.
        function: the law as one named Function, e.g. (q, v, ref, mask, z) → (u, z_next,
            status, residual). The state `z` and `z_next` have the same size.
        inputs, outputs: one `Signal` for each, in the Function's order.
        u_min, u_max: (nu,) limits that the output never leaves; infinite where there are none.
        z0: (nz,) initial state.
        period: sample time, s.
        stages: the parts around the QP solver, or None where `function` is plain arithmetic.
        source: name of the model that it was made from.
        monitor: a Function that a report calls beside the controller and that is never exported:
            any of (q, v, act, ref, mask, z, u), by name → any of
            `target`, `error` (ny,): desired value and error of the tasks
            (rotations as vectors, rad); `contact_force` (3 nc,): the planned contact forces
            (n, t1, t2), in the order of `contacts`.
        monitors: one `Signal` for each output of `monitor`, in its order.
        contacts: the contacts that the controller uses, in the order of its mask.
        statuses: text of each status, from 0 on.
        safe_statuses: those whose u is the safe output.
        prediction: a Function that a report calls beside the controller and that is never
            exported: any of its inputs, `u` and `z_next`, by name → (x, u), (nx, N + 1) states
            and (nu, N) controls that the law plans, one column for each period, from the moment
            at which u acts; None where the law has no plan.
        prediction_rows: names of the rows of x; `q.` and `v.` come first where x is (q, v).
        delay: ticks from a measurement to the moment at which u acts, as the law assumes.
        limits: further bounded quantities: rates, states, outputs.
    """

    name: str
    function: ca.Function
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    u_min: NDArray[np.float64]
    u_max: NDArray[np.float64]
    z0: NDArray[np.float64]
    period: float
    stages: LeastDistanceStages | None = None
    source: str = ""
    notes: dict[str, str] = field(default_factory=dict)
    monitor: ca.Function | None = None
    monitors: tuple[Signal, ...] = ()
    contacts: tuple[Contact, ...] = ()
    statuses: tuple[str, ...] = (
        "solved and verified",
        "feasible, not optimal",
        "infeasible, safe output",
        "bad input, safe output",
        "solver stopped or check failed, safe output",
    )
    safe_statuses: tuple[int, ...] = (2, 3, 4)
    prediction: ca.Function | None = None
    prediction_rows: tuple[str, ...] = ()
    delay: int = 0
    limits: Limits | None = None
