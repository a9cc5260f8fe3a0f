"""Motion of a mechanism over a tick, and how the errors of its state move with it.

    q_m = q ⊕ ½ dt v,   a = a(q_m, v, f),   v⁺ = v + dt a,   q⁺ = q_m ⊕ ½ dt v⁺

Of second order in forces that depend on q, with one evaluation of the dynamics. Forces have a white
part of density σ that is constant within a tick: it adds `σ²/dt` to the variance of f. Disturbing
forces and parameters walk. Errors are those of `System.difference` for q, and differences of all
others; derivatives of a follow the implicit rules of the dynamics, with redundant rows too.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.dynamics.derivatives import motion_and_jacobian
from mbcasadi.dynamics.inverse_derivatives import coordinate_chart
from mbcasadi.dynamics.terms import TREATMENT, state_symbols
from mbcasadi.system import System, evaluate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """Of the errors: of q (nv,), of v (nv,), of disturbing forces, of parameters.

    Attributes:
        nv: size of v.
        moving: size of q without parameters behind it.
        disturbed: coordinate of each disturbing force.
        unknown: place in p of each estimated parameter.
    """

    nv: int
    moving: int
    disturbed: tuple[int, ...]
    unknown: tuple[int, ...]

    @property
    def extra(self) -> int:
        """Number of states beside q and v."""
        return len(self.disturbed) + len(self.unknown)

    @property
    def n(self) -> int:
        """Number of errors."""
        return 2 * self.nv + self.extra


class Plus(NamedTuple):
    """`q ⊕ dq`, and its Jacobians (nv, nv) by an error of q and by dq, in errors of the result."""

    q: ca.SX
    by_q: ca.SX
    by_dq: ca.SX


def plus(system: System, q: ca.SX, dq: ca.SX) -> Plus:
    """Return `q ⊕ dq` with its Jacobians.

    Args:
        system: the mechanism, which carries its parameters.
        q, dq: (nq,), (nv,).
    """
    here, step = ca.SX.sym("q", system.nq), ca.SX.sym("dq", system.nv)
    there = system.integrate(here, step)
    to_error = coordinate_chart(system, there).from_tangent(ca.SX.eye(system.nv))
    by_q = to_error @ ca.jacobian(there, here) @ system.velocity_map(here)
    outputs = [there, by_q, to_error @ ca.jacobian(there, step)]
    if system.nq == system.nv or not _turns(system):
        outputs[1:] = [ca.SX.eye(system.nv)] * 2
    return Plus(*ca.Function("plus", [here, step], outputs)(q, dq))


def _turns(system: System) -> bool:
    """Return whether q has quaternions."""
    joints = () if system.tree is None else system.tree.joints
    return any(joint.kind in ("ball", "free") for joint in joints)


@dataclass(frozen=True)
class Process:
    """Functions of a tick's prediction. The system carries its parameters behind q.

    Attributes:
        system: the mechanism.
        layout: of the errors.
        force_noise: (nv,) densities.
        walks: densities of the states beside q and v.
    """

    system: System
    layout: Layout
    force_noise: Array
    walks: Array

    @property
    def input(self) -> tuple[str, int]:
        """Name and size of what drives the mechanism: controls, or forces without actuators."""
        return ("u", self.system.nu) if self.system.nu else ("f", self.system.nv)

    @cached_property
    def placed(self) -> ca.Function:
        """(q, x) → (q_next): q with the estimated parameters behind it."""
        q, x = ca.SX.sym("q", self.system.nq), ca.SX.sym("x", self.layout.extra)
        q_next = ca.SX(q)
        for k, place in enumerate(self.layout.unknown):
            q_next[self.layout.moving + place] = x[len(self.layout.disturbed) + k]
        return ca.Function("placed", [q, x], [q_next], ["q", "x"], ["q_next"])

    @cached_property
    def drive(self) -> ca.Function:
        """(q, v, x, u) → (f, f_q, f_v): force of actuators or the input, and of disturbances."""
        system, layout = self.system, self.layout
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
        x, u = ca.SX.sym("x", layout.extra), ca.SX.sym("u", self.input[1])
        f = u
        if system.nu:
            f = evaluate(system.actuator_force, {"q": q, "v": v, "u": u})
        f = ca.densify(f)
        slopes = [ca.jacobian(f, q), ca.jacobian(f, v)]
        for k, row in enumerate(layout.disturbed):
            f[row] += x[k]
        names = (["q", "v", "x", "u"], ["f", "f_q", "f_v"])
        return ca.Function("drive", [q, v, x, u], [f, *slopes], *names, {"cse": True})

    @cached_property
    def motion(self) -> ca.Function:
        """(q, v, f) → (a, a_q, a_v, a_f), by the coordinates of q and the parameters behind."""
        state = state_symbols(self.system, ca.MX)
        f = ca.MX.sym("f", self.system.nv)
        a, _, J = motion_and_jacobian(self.system, state, f, TREATMENT)
        outputs = [a, J["a", "q"], J["a", "v"], J["a", "f"]]
        names = (["q", "v", "f"], ["a", "a_q", "a_v", "a_f"])
        return ca.Function("motion", [state.q, state.v, f], outputs, *names)

    @cached_property
    def half(self) -> ca.Function:
        """(q, v, dt) → (q_m)."""
        q, v, dt = (
            ca.SX.sym(k, n) for k, n in (("q", self.system.nq), ("v", self.system.nv), ("dt", 1))
        )
        q_m = self.system.integrate(q, dt / 2 * v)
        return ca.Function("half", [q, v, dt], [q_m], ["q", "v", "dt"], ["q_m"], {"cse": True})

    @cached_property
    def errors(self) -> ca.Function:
        """(q, v, L, dt, motion at q_m) → (q_next, v_next, W): with `P = L Lᵀ`, `P⁺ = W Wᵀ`.

        W (n, n + m) has the errors that were and, in its last columns, those that noise adds.
        """
        system, layout, nv = self.system, self.layout, self.layout.nv
        sizes = {"q": (system.nq, 1), "v": (nv, 1), "L": (layout.n, layout.n), "dt": (1, 1)}
        sizes |= {"a": (nv, 1), "a_q": (nv, system.nq), "a_v": (nv, nv), "a_f": (nv, nv)}
        s = {key: ca.SX.sym(key, *shape) for key, shape in sizes.items()}
        f_q = ca.SX.sym("f_q", self.drive.sparsity_out("f_q"))
        f_v = ca.SX.sym("f_v", self.drive.sparsity_out("f_v"))
        q, v, L, dt, a_f = (s[key] for key in ("q", "v", "L", "dt", "a_f"))
        first = plus(system, q, dt / 2 * v)
        v_next = v + dt * s["a"]
        second = plus(system, first.q, dt / 2 * v_next)
        by_q, by_v = s["a_q"] + a_f @ f_q, s["a_v"] + a_f @ f_v
        nd, x = len(layout.disturbed), L[2 * nv :, :]
        L_q, L_v = L[:nv, :], L[nv : 2 * nv, :]
        middle = first.by_q @ L_q + dt / 2 * first.by_dq @ L_v
        a = by_q @ system.velocity_map(first.q) @ middle + by_v @ L_v
        a += a_f[:, list(layout.disturbed)] @ x[:nd, :]
        a += by_q[:, [layout.moving + k for k in layout.unknown]] @ x[nd:, :]
        L_v = L_v + dt * a
        noisy = np.flatnonzero(self.force_noise).tolist()
        added = ca.sqrt(dt) * a_f[:, noisy] @ ca.diag(ca.DM(self.force_noise[noisy]))
        grown = ca.sqrt(dt) * ca.diag(ca.DM(self.walks))
        to_q = dt / 2 * second.by_dq
        W = ca.blockcat(
            [
                [second.by_q @ middle + to_q @ L_v, to_q @ added, ca.SX(nv, layout.extra)],
                [L_v, added, ca.SX(nv, layout.extra)],
                [x, ca.SX(layout.extra, len(noisy)), grown],
            ]
        )
        inputs = s | {"f_q": f_q, "f_v": f_v}
        names = ([*inputs], ["q_next", "v_next", "W"])
        return ca.Function(
            "errors", [*inputs.values()], [second.q, v_next, W], *names, {"cse": True}
        )

    def predict(
        self, q: ca.MX, v: ca.MX, x: ca.MX, u: ca.MX, L: ca.MX, dt: ca.MX
    ) -> tuple[ca.MX, ca.MX, ca.MX]:
        """Return q and v after a tick, and W; see `errors`."""
        q_m = self.half(q, v, dt)
        force = self.drive(q=q_m, v=v, x=x, u=u)
        motion = self.motion(q=q_m, v=v, f=force["f"])
        slopes = {"f_q": force["f_q"], "f_v": force["f_v"]}
        out = self.errors(q=q, v=v, L=L, dt=dt, **motion, **slopes)
        return out["q_next"], out["v_next"], out["W"]
