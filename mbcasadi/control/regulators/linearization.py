"""Linearisation of a mechanism at a state, on its constraint manifold.

Coordinates of a small deviation, `x = (ξ, η, α)`, α that of the activation states if any:

    δq = Z_q ξ,    δv = Z_v η - A⁺ (∂psi/∂q) Z_q ξ

`Z_q` spans null(A_phi) (rows of phi alone), `Z_v` null(A) (all rows), of any rank of A. They are
orthonormal in the metric `W = diag(1 / size²)`, sizes of `System.scales.coordinates`: ξ counts
radians and lengths of the model, and no law depends on the model's units. Where all joints are
hinges W is the identity. Deviations are tangent ones, `q ⊕ δq`: a quaternion counts three. The
second term keeps the velocity admissible where the constraints turn; it vanishes at rest.
Conversely `ξ = Z_qᵀ W δq` and `η = Z_vᵀ W δv`, so the coordinates of a measured state follow from
two products.
"""

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.equilibrium import Equilibrium
from mbcasadi.control.regulators.named_matrices import NamedMatrices, input_names, state_names
from mbcasadi.control.regulators.operating_point import (
    Array,
    Place,
    motion_fun,
    numbers,
    place_of,
    require_linear,
)
from mbcasadi.control.regulators.poles_table import poles_html
from mbcasadi.control.regulators.tangent import (
    TANGENT_RANK_TOL,
    Tangent,
    coordinates_of,
    project_state,
    require_regular,
    spin,
    tangent,
)
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column, require_share
from mbcasadi.short_text import summarised
from mbcasadi.system import System, evaluate
from mbcasadi.system.parametric import at_model_values

STILL = 1e-6
"""Largest drift of a point at rest, in the model's own rates and lengths."""


@summarised
@dataclass(frozen=True, eq=False)
class Linearization:
    """`dx/dt = dfdx x + dfdu δu + drift`, or `x_next = …` where `period` is given.

    Attributes:
        system: the mechanism.
        q, v, u, t, mask: the operating point, closed to rounding errors.
        act: (na,) activation states there.
        dfdx, dfdu, drift: (nx, nx), (nx, nu), (nx,); drift is zero at an equilibrium.
        Z_q, Z_v: (nv, n_q), (nv, n_v) bases, `x = (ξ, η)`, orthonormal in the metric W.
        slope: (nv, n_q) `-A⁺ (∂psi/∂q) Z_q`.
        period: sample time of a discrete system, s; None for a continuous one.
    """

    system: System
    q: Array
    v: Array
    u: Array
    t: float
    mask: Array
    dfdx: Array
    dfdu: Array
    drift: Array
    Z_q: Array
    Z_v: Array
    slope: Array
    period: float | None = None
    act: Array = field(default_factory=lambda: np.zeros(0))

    def _summary(self) -> dict[str, object]:
        return {
            "system": self.system.name,
            "nx": self.nx,
            "nu": self.nu,
            "period": "continuous" if self.period is None else self.period,
            "q": self.q,
            "largest real part of a pole": np.linalg.eigvals(self.dfdx).real.max(initial=-np.inf),
        }

    def _repr_html_(self) -> str:
        kind = "" if self.period is None else f", sampled every {self.period:g} s"
        title = f"Linearization of {self.system.name}: nx = {self.nx}, nu = {self.nu}{kind}"
        return poles_html(title, self.dfdx, self.period)

    @property
    def n_q(self) -> int:
        """Number of free position directions."""
        return int(self.Z_q.shape[1])

    @property
    def n_v(self) -> int:
        """Number of free velocity directions."""
        return int(self.Z_v.shape[1])

    @property
    def nx(self) -> int:
        """Size of x."""
        return self.n_q + self.n_v + self.n_a

    @property
    def n_a(self) -> int:
        """Number of activation states."""
        return int(self.act.size)

    @property
    def nu(self) -> int:
        """Size of u."""
        return int(self.u.size)

    @property
    def to_dq(self) -> Array:
        """(nv, nx) `δq = to_dq x`."""
        return np.hstack([self.Z_q, np.zeros((self.Z_q.shape[0], self.n_v + self.n_a))])

    @property
    def to_dv(self) -> Array:
        """(nv, nx) `δv = to_dv x`."""
        return np.hstack([self.slope, self.Z_v, np.zeros((self.Z_v.shape[0], self.n_a))])

    @property
    def to_dact(self) -> Array:
        """(na, nx) `δact = to_dact x`."""
        return np.hstack([np.zeros((self.n_a, self.n_q + self.n_v)), np.eye(self.n_a)])

    @property
    def to_xi(self) -> Array:
        """(n_q, nv) `Z_qᵀ W`, so that `ξ = to_xi δq`."""
        return coordinates_of(self.system, self.Z_q)

    @property
    def to_eta(self) -> Array:
        """(n_v, nv) `Z_vᵀ W`, so that `η = to_eta δv`."""
        return coordinates_of(self.system, self.Z_v)

    @property
    def from_dq(self) -> Array:
        """(nx, nv) part of `x = from_dq δq + from_dv δv + from_dact δact`."""
        return np.vstack([self.to_xi, np.zeros((self.n_v + self.n_a, self.Z_q.shape[0]))])

    @property
    def from_dv(self) -> Array:
        """(nx, nv) part of `x = from_dq δq + from_dv δv + from_dact δact`."""
        rows, columns = self.to_eta, self.Z_v.shape[0]
        return np.vstack([np.zeros((self.n_q, columns)), rows, np.zeros((self.n_a, columns))])

    @property
    def from_dact(self) -> Array:
        """(nx, na) part of `x = from_dq δq + from_dv δv + from_dact δact`."""
        return self.to_dact.T

    @checked
    def coordinates(self, q: ArrayLike, v: ArrayLike, act: ArrayLike | None = None) -> Array:
        """Return x (nx,) of a measured state; act (na,) where there are activations."""
        dq = self.system.difference(self.q, column("q", q, self.system.nq))
        dv = column("v", v, self.system.nv) - self.v
        dact = (self.act if act is None else column("act", act, self.n_a)) - self.act
        x = self.from_dq @ np.array(dq).ravel() + self.from_dv @ dv + self.from_dact @ dact
        return np.asarray(x)

    @checked
    def state(self, x: ArrayLike) -> tuple[Array, Array]:
        """Return (q, v) of coordinates x, on the manifold to first order."""
        values = column("x", x, self.nx)
        q = np.array(self.system.integrate(self.q, self.to_dq @ values)).ravel()
        return q, self.v + self.to_dv @ values

    @checked
    def activation(self, x: ArrayLike) -> Array:
        """Return act (na,) of coordinates x."""
        return self.act + self.to_dact @ column("x", x, self.nx)

    def coordinates_fun(self) -> ca.Function:
        """Return `coordinates` as a Function (q, v, [act]) → (x), for a controller in C."""
        q, v = ca.SX.sym("q", self.system.nq), ca.SX.sym("v", self.system.nv)
        dq, act = self.system.difference(self.q, q), ca.SX.sym("act", self.n_a)
        xi, eta = ca.DM(self.to_xi) @ dq, ca.DM(self.to_eta) @ (v - self.v)
        inputs = {"q": q, "v": v} | ({"act": act} if self.n_a else {})
        x = ca.vertcat(xi, eta, act - self.act)
        return ca.Function("coordinates", list(inputs.values()), [x], list(inputs), ["x"])

    @checked
    def output_matrix(self, output: ca.Function) -> Array:
        """Return (ny, nx) `δy = C x` of a Function (q, [v]) → (y).

        Raises:
            UnknownNameError: the Function has an input other than q and v.
        """
        return output_matrix(self, output)

    @checked
    def matrices(self, output: ca.Function | None = None) -> NamedMatrices:
        """Return A, B, C, D with the names of states, inputs and outputs.

        Args:
            output: (q, [v]) → (y), such as `encoders(system, joints)`; x itself by default.

        Raises:
            UnknownNameError: the Function has an input other than q and v.
        """
        states, C = state_names(self.system, self.Z_q, self.Z_v), np.eye(self.nx)
        outputs = states
        if output is not None:
            C = output_matrix(self, output)
            outputs = tuple(f"{output.name_out(0)}[{k}]" for k in range(len(C)))
        return NamedMatrices(
            A=self.dfdx,
            B=self.dfdu,
            C=C,
            D=np.zeros((len(C), self.nu)),
            states=states,
            inputs=input_names(self.system),
            outputs=outputs,
            period=self.period,
        )

    @checked
    def to_ss(self, output: ca.Function | None = None) -> Any:
        """Return `matrices` as a `control.StateSpace` of python-control.

        A gain that is designed for it goes to `feedback`, a whole controller to `feedback_from_ss`.

        Args:
            output: as in `matrices`.

        Raises:
            MissingExtraError: python-control is not installed.
            ProblemError: the operating point does not rest, which a `StateSpace` cannot say.
            UnknownNameError: as in `matrices`.
        """
        rate = self.system.scales.rate
        size = np.r_[np.full(self.n_q, rate), np.full(self.n_v, rate**2), np.full(self.n_a, rate)]
        drift = np.abs(self.drift) / (size * (self.period or 1.0))
        if drift.max(initial=0.0) > STILL:
            raise ProblemError(
                f"'{self.system.name}' does not rest where it was linearised; expected an "
                "equilibrium, or matrices(), which leaves the drift to you"
            )
        return self.matrices(output).to_ss()


@checked
@at_model_values
def linearize(
    system: System,
    q: ArrayLike | Equilibrium,
    v: ArrayLike | None = None,
    u: ArrayLike | None = None,
    *,
    act: ArrayLike | None = None,
    t: float = 0.0,
    mask: ArrayLike | None = None,
    rank_tol: float = TANGENT_RANK_TOL,
) -> Linearization:
    """Return the linear system near (q, v, u) on the constraint manifold.

        dξ/dt = Z_qᵀ W (v + (slope - ½ Ω Z_q) ξ + Z_v η)
        dη/dt = Z_vᵀ W (a + (∂a/∂q Z_q + ∂a/∂v slope) ξ + ∂a/∂v Z_v η + ∂a/∂u δu + ∂a/∂act α)
        dα/dt = r + (∂r/∂q Z_q + ∂r/∂v slope) ξ + ∂r/∂v Z_v η + ∂r/∂u δu + ∂r/∂act α

    with `r` the rates of the activations (`act_dot`). Where a rate has a kink at the operating
    point, as that of a muscle without `tausmooth` has at rest, its side of falling counts.
    `Ω` holds `[ω]×` of ball and free joints, zero elsewhere. This is the exact Jacobian of the
    motion in the coordinates `ξ = Z_qᵀ W (q ⊖ q_0)`, `η = Z_vᵀ W (v - v_0)` of the manifold, at
    rest or in motion. Derivatives of the projected motion follow implicit rules, so rows may be
    redundant. The control's force is `B u + f_0`; passive forces and servos are included.

    Args:
        system: the mechanism.
        q: (nq,) configuration on the manifold; or an `Equilibrium`, which gives q and u.
        v, u: (nv,), (nu,) velocity and control, zero by default.
        act: (na,) activation states, zero by default, or the equilibrium's.
        t: s, for constraints that depend on time; the linear system is that of this instant.
        mask: (nc,) rows that are on; the system's own by default.
        rank_tol: singular value of A, in the sizes of coordinates and residuals, that counts as
            zero; relative to the largest, the longest row's usual length at least.

    Raises:
        ShapeError: a wrong shape, or NaN.
        ProblemError: a state off the manifold, a singular pose (the message names it), a control
            outside its range; an equilibrium beside a v, u or act of its own.
    """
    if isinstance(q, Equilibrium):
        if v is not None or u is not None or act is not None:
            raise ProblemError(
                "an equilibrium gives q, u and act, at rest; expected no v, u or act beside it, or "
                "linearize(system, q, v, u)"
            )
        u, act, q = q.u, q.act, q.q
    require_share(rank_tol=rank_tol)
    place = project_state(system, place_of(system, q, v, u, t, mask, act), rank_tol)
    bases = tangent(system, place, rank_tol)
    require_regular(system, place, bases, rank_tol)
    motion = numbers(motion_fun(system, rank_tol), place.values)
    require_linear(system, place, motion["clip"])
    return assemble_state(system, place, bases, motion, -0.5 * spin(system, place.v) @ bases.Z_q)


def assemble_state(
    system: System, place: Place, bases: Tangent, motion: dict[str, Array], turning: Array
) -> Linearization:
    """Return the linear system of given bases.

    Args:
        system: the mechanism.
        place: the operating point.
        bases: bases of the tangent space there.
        motion: acceleration and its derivatives, by the names of `motion_fun`.
        turning: (nv, n_q) contribution of the chart to dξ/dt.
    """
    Z_q, Z_v, slope = bases.Z_q, bases.Z_v, bases.slope
    to_xi, to_eta = coordinates_of(system, Z_q), coordinates_of(system, Z_v)
    a_q, a_v, r_q, r_v = (motion[key] for key in ("a_q", "a_v", "rate_q", "rate_v"))
    n_q, na = Z_q.shape[1], system.na
    dfdx = np.block(
        [
            [to_xi @ (slope + turning), to_xi @ Z_v, np.zeros((n_q, na))],
            [to_eta @ (a_q @ Z_q + a_v @ slope), to_eta @ a_v @ Z_v, to_eta @ motion["a_act"]],
            [r_q @ Z_q + r_v @ slope, r_v @ Z_v, motion["rate_act"]],
        ]
    )
    dfdu = np.vstack([np.zeros((n_q, system.nu)), to_eta @ motion["a_u"], motion["rate_u"]])
    drift = np.concatenate([to_xi @ place.v, to_eta @ motion["a"].ravel(), motion["rate"].ravel()])
    return Linearization(
        system=system,
        q=place.q,
        v=place.v,
        u=place.u,
        t=place.t,
        mask=place.mask,
        dfdx=dfdx,
        dfdu=dfdu,
        drift=drift,
        Z_q=Z_q,
        Z_v=Z_v,
        slope=slope,
        act=place.act,
    )


def output_matrix(linear: Linearization, output: ca.Function) -> Array:
    """Return (ny, nx) `C = ∂y/∂q to_dq + ∂y/∂v to_dv` of a Function (q, [v]) → (y)."""
    system = linear.system
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    y = evaluate(output, {"q": q, "v": v})
    slopes = ca.Function(
        "slopes", [q, v], [ca.jacobian(y, q) @ system.velocity_map(q), ca.jacobian(y, v)]
    )
    along_q, along_v = (np.array(x) for x in slopes(linear.q, linear.v))
    return np.asarray(along_q @ linear.to_dq + along_v @ linear.to_dv)
