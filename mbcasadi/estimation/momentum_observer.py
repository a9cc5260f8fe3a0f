"""External forces from the generalised momentum, without accelerations  [De Luca & Mattone 2005].

Of `M a + h = f + f_passive + Aᵀ lam + f_ext` the momentum `p = M v` has the rate

    ṗ = f + b + Aᵀ lam + f_ext,     b = f_passive - h + Ṁ v,

the same as with `Cᵀ v - g` in place of `Ṁ v - h`, in any coordinates of v. P projects onto null(A),
so `P Aᵀ = 0` removes constraint forces, and `P dp = d(P p) - Ṗ p dt`: the increments of p between
ticks hold the term with Ṗ, also where the rank changes. With f constant over dt, the residual

    r ← P (e r + (1 - e) (Δp/dt - b - f)),     e = exp(-K dt),

is `P f_ext` behind the filter `K/(s + K)`; b is the mean of both ends, P that of the mid-point.

Noise of v, white with Σ_v, enters by p twice, with opposite signs; that of f, white with Σ_f, once:

    Σ_r = P (2 (1 - e)² / ((1 + e) dt²) M Σ_v M + (1 - e) / (1 + e) Σ_f) P.

A collision is stated where `rᵀ Σ_r⁺ r` exceeds the quantile of χ² with as many degrees of freedom
as P has. Noise of v by damping D is left out: its share is about `dt D/M`.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description.status import Flag
from mbcasadi.dynamics.terms import Treatment, row_scale_of
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.memory import Memory, finite_outputs
from mbcasadi.estimation.observer_guard import (
    dynamics_guard,
    guarded,
    require_observable_dynamics,
)
from mbcasadi.linalg import (
    MatrixRoot,
    RowBasis,
    kind_for,
    operations,
    row_basis,
    tree_cholesky,
    tree_solve_transposed,
)
from mbcasadi.qp.input_guard import MASK_ON
from mbcasadi.shapes import (
    column,
    real_array,
    require_identifier,
    require_positive,
    require_share,
)
from mbcasadi.system import System, evaluate

Array = NDArray[np.float64]


class Settings(NamedTuple):
    """Numbers of an observer: noise of v and of the generalised force (nv,)."""

    gain: float
    rate_noise: Array
    force_noise: Array
    false_alarm: float
    pivot: bool


@checked
def momentum_observer(
    system: System,
    *,
    gain: float,
    rate_noise: ArrayLike,
    force_noise: ArrayLike,
    false_alarm: float = 1e-6,
    period: float = 1e-3,
    pivot: bool = True,
    name: str = "momentum_observer",
) -> ca.Function:
    """Return (q, v, u, [act], [t], [mask], dt, z) → (residual, z_next, collision, status, flags).

    - `u`: that has acted since the last tick; `act` and `t` are those of this tick.
    - `mask`: (nc,) for each row of the system, whether it acts; rows count that act at either end
      of a tick.
    - `residual`: (nv,) external force, N m or N, filtered by `gain / (s + gain)`: `Jᵀ F` of a
      force F on a body with the Jacobian J. Of systems with rows it is the part that the rows leave
      free, `vᵀ r = vᵀ Jᵀ F` for every v that they allow, least in the sizes of the coordinates.
      Contacts, joint limits and dry friction that are no rows are external forces.
    - `z`: zeros at the start.
    - `collision`: one where the residual is larger than noise explains.
    - `status`: 0 estimated; 3 bad input, which includes a dt that is no number in (0, 10 period]:
      residual and collision are kept, and the next tick starts a new difference; 4 the memory was
      broken, started anew.
    - `flags`: the bit GATED where the input was rejected.

    Args:
        system: the mechanism, with a free base or without; a floating base is observed in all its
            coordinates.
        gain: K, 1/s: larger is faster and noisier.
        rate_noise: standard deviation of v, a number or (nv,).
        force_noise: standard deviation of the generalised force of a tick, N m or N, a number or
            (nv,): torques that actuators miss, and what the model does not know.
        false_alarm: share of ticks without an external force at which a collision is stated.
        period: s, the usual dt.
        pivot: as in `forward_dynamics`; without it, contacts of legs take half of the time.
        name: a C identifier.

    Raises:
        ProblemError: a number that is not positive, a false alarm that is no share, or a system
            with parameters or with dynamics over a step.
        ShapeError: noise of a wrong shape.
    """
    require_identifier("name", name)
    require_positive(gain=gain, period=period, false_alarm=false_alarm)
    require_share(false_alarm=false_alarm)
    settings = Settings(
        gain,
        _deviations("rate_noise", rate_noise, system.nv),
        _deviations("force_noise", force_noise, system.nv, positive=True),
        false_alarm,
        pivot,
    )
    require_observable_dynamics(system)
    guard = dynamics_guard(system, period)
    rows = operations(system.loop_jacobian.sparsity_out("A"), pivot) if system.nc else 0
    kind = kind_for(2 * system.nv**3 + rows)  # beside products and a factor of (nv, nv)
    inputs = {key: kind.sym(key, *guard.size_in(key)) for key in guard.name_in()}
    memory = _memory(system)
    z = kind.sym("z", memory.size)
    outputs = _tick(system, settings, guarded(guard, inputs), memory, z)
    inputs["z"] = z
    return ca.Function(
        name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs], {"cse": True}
    )


def _deviations(name: str, values: ArrayLike, count: int, *, positive: bool = False) -> Array:
    """Return (count,) standard deviations from one for all or one for each."""
    given = real_array(name, values)
    deviations = column(name, given if given.ndim else np.full(count, given), count)
    if np.any(deviations < 0) or (positive and not np.all(deviations)):
        bound = "above 0" if positive else "of at least 0"
        raise ProblemError(f"{name} is {given}; expected standard deviations {bound}")
    return deviations


def _memory(system: System) -> Memory:
    masked = 0 if system.mask is None else system.nc
    sizes = {"p": system.nv, "b": system.nv, "r": system.nv, "collision": 1, "going": 1}
    return Memory(sizes | {"rows": masked})


def _terms_fun(system: System) -> ca.Function:
    """Return (q, v) → (M, p, b): inertia, momentum, and the force on it without actuators."""

    def make() -> ca.Function:
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
        M = system.mass_matrix(q)
        turning = ca.jtimes(M @ v, q, system.velocity_map(q) @ v)  # Ṁ v
        b = system.passive_force(q, v) - system.bias_force(q, v) + turning
        return ca.Function(
            "momentum_terms", [q, v], [M, M @ v, b], ["q", "v"], ["M", "p", "b"], {"cse": True}
        )

    return system.cached_function("momentum_terms", make)


def _tick(
    system: System, settings: Settings, given: dict[str, ca.MX], memory: Memory, z: ca.MX
) -> dict[str, ca.MX]:
    """Return all outputs of a tick from cleaned inputs."""
    before, sound = memory.recalled(z, ca.DM.zeros(z.shape))
    valid, dt = given["valid"], given["dt"]
    size = ca.DM(system.scales.coordinates)
    terms = _terms_fun(system)(q=given["q"], v=given["v"])
    f = evaluate(system.actuator_force, given) if system.nu else 0 * terms["p"]
    e = ca.exp(-settings.gain * dt)
    going = ca.logic_and(before["going"] > MASK_ON, valid)
    external = (terms["p"] - before["p"]) / dt - (terms["b"] + before["b"]) / 2 - f
    r = size * ca.if_else(going, e * before["r"] + (1 - e) * external, before["r"])
    rows, rank = None, type(z)(0)
    if system.nc:
        rows = _rows(system, settings.pivot, given, before["rows"])
        r, rank = r - rows.V @ (rows.V.T @ r), rows.rank
    S = _covariance(terms["M"], size, settings, e, dt)
    bound = _bound(system.nv, rank, settings.false_alarm)
    hit = ca.logic_and(going, _distance2(S, rows, r) > bound)
    after = {"p": terms["p"], "b": terms["b"], "going": valid}
    after["r"] = ca.if_else(valid, r / size, before["r"])
    after["collision"] = ca.if_else(valid, hit, before["collision"])
    after["rows"] = given["mask"] if system.mask is not None else type(z)(0, 1)
    outputs = {
        "residual": after["r"],
        "z_next": memory.join(after),
        "collision": after["collision"],
        "status": ca.if_else(valid, ca.if_else(sound, 0, 4), 3),
        "flags": Flag.GATED * ca.logic_not(valid),
    }
    return finite_outputs(outputs, {"status": 4})


def _rows(
    system: System, pivot: bool, given: dict[str, ca.MX], mask_before: ca.MX
) -> RowBasis[ca.MX]:
    """Return the rows that act, in the sizes of the coordinates, in the middle of the tick."""
    back = given["dt"] / 2
    at = given | {"q": system.integrate(given["q"], -back * given["v"])}
    at |= {"t": given["t"] - back} if system.timed else {}
    size, treatment = ca.DM(system.scales.coordinates), Treatment(pivot=pivot)
    A = evaluate(system.loop_jacobian, at) @ ca.diag(size)
    if system.mask is not None:
        at["mask"] = ca.fmax(given["mask"], mask_before)
        A = ca.diag(at["mask"]) @ A
    root = MatrixRoot(ca.diag(1 / size), ca.diag(size))
    return row_basis(A, **treatment.rule(row_scale_of(system, at, treatment, root)))


def _covariance(M: ca.MX, size: ca.DM, settings: Settings, e: ca.MX, dt: ca.MX) -> ca.MX:
    """Return Σ_r before its projection, in the sizes of the coordinates."""
    by_rate = ca.diag(size) @ M @ ca.diag(ca.DM(settings.rate_noise))
    by_force = ca.diag((size * ca.DM(settings.force_noise)) ** 2)
    return (1 - e) / (1 + e) * (2 * (1 - e) / dt**2 * (by_rate @ by_rate.T) + by_force)


def _distance2(S: ca.MX, rows: RowBasis[ca.MX] | None, r: ca.MX) -> ca.MX:
    """Return `rᵀ (P S P)⁺ r` of r in range(P).

    With `S⁻¹ = Fᵀ F`, `y = F r`, `W = F V` it is `|y|²` without the part of y in range(W).
    """
    L = tree_cholesky(S)
    if rows is None:
        return ca.sumsqr(tree_solve_transposed(L, r))
    white = tree_solve_transposed(L, ca.horzcat(r, rows.V))
    y, W = white[:, 0], white[:, 1:]
    gram = W.T @ W + ca.diag(1 - rows.used)  # columns that are not in use are zero
    return ca.sumsqr(y) - ca.sumsqr(tree_solve_transposed(tree_cholesky(gram), W.T @ y))


def _bound(n: int, rank: ca.MX, false_alarm: float) -> ca.MX:
    """Return the quantile of χ² with n - rank degrees of freedom."""
    from scipy.special import chdtri  # heavy, and needed when an observer is made only

    free = np.arange(1, n + 1)
    quantiles = ca.DM(chdtri(free, false_alarm))
    return ca.sum1((ca.DM(free) == n - rank) * quantiles)
