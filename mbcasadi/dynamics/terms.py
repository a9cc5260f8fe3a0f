"""The matrices of a `System` at one state, as every file of this room needs them."""

from typing import Any, Generic, NamedTuple

import casadi as ca

from mbcasadi.linalg import UNROLL_LIMIT, Sym, operations
from mbcasadi.system import System


class Terms(NamedTuple, Generic[Sym]):
    """`M a + h = f + Aᵀ lam`, `A a + c = 0`, passive forces inside `h`.

    Fields: `M` (nv, nv), `h` (nv, 1) bias force minus passive force, `A` (nc, nv), `c` (nc, 1).
    """

    M: Sym
    h: Sym
    A: Sym
    c: Sym


class State(NamedTuple, Generic[Sym]):
    """Symbols of the inputs that all Functions share: q, v and, where the system has it, t."""

    q: Sym
    v: Sym
    t: Sym | None

    @property
    def of_q(self) -> dict[str, Sym]:
        """Arguments of what depends on the configuration."""
        return {"q": self.q} if self.t is None else {"q": self.q, "t": self.t}

    @property
    def of_qv(self) -> dict[str, Sym]:
        """Arguments of what depends on the velocity too."""
        return {"q": self.q, "v": self.v} | ({} if self.t is None else {"t": self.t})

    @property
    def last(self) -> dict[str, Sym]:
        """The optional inputs, which stand behind the others."""
        return {} if self.t is None else {"t": self.t}


def state_symbols(system: System, kind: Any) -> State[Any]:
    """Return symbols of `kind` (`ca.SX` or `ca.MX`) for the inputs of the system."""
    timed = "constraint_velocity" in system.builders
    t = kind.sym("t") if timed else None
    return State(kind.sym("q", system.nq), kind.sym("v", system.nv), t)


def terms(system: System, state: State[ca.SX]) -> Terms[ca.SX]:
    """Return the matrices of the system as scalars."""
    of_q, of_qv = {"q": state.q}, {"q": state.q, "v": state.v}
    h = system.bias_force(**of_qv)["h"] - system.passive_force(**of_qv)["f_passive"]
    M = system.mass_matrix(**of_q)["M"]
    if system.nc == 0:
        return Terms(M, h, ca.SX(0, system.nv), ca.SX(0, 1))
    A = system.loop_jacobian(**state.of_q)["A"]
    return Terms(M, h, A, system.loop_bias(**state.of_qv)["c"])


def terms_fun(system: System) -> ca.Function:
    """Return `terms` as a Function (q, v, [t]) → (M, h, A, c) that shares the kinematics."""
    state = state_symbols(system, ca.SX)
    out = terms(system, state)._asdict()
    names = list(state.of_qv)
    return ca.Function(
        "terms", list(state.of_qv.values()), list(out.values()), names, list(out), {"cse": True}
    )


def terms_at(system: System, state: State[Any]) -> Terms[Any]:
    """Return the matrices in the kind of expression that the state has."""
    if isinstance(state.q, ca.SX):
        return terms(system, state)
    return Terms(**terms_fun(system)(**state.of_qv))


def choose_kind(system: System, pivot: bool) -> Any:
    """Return `ca.SX` where the constrained solve is small enough to unroll, else `ca.MX`."""
    count = 5 * system.nv**3 // 3  # products and elimination of nv x nv matrices
    if system.nc:
        count += 2 * operations(system.loop_jacobian.sparsity_out("A"), pivot)
    return ca.SX if count <= UNROLL_LIMIT else ca.MX
