"""Rates that no encoder measures, from the dynamics and stationary gains.

Predicted from the last estimate by the accelerations of the model under the known controls, then
corrected by the innovation of the joints with encoders, and moved onto the manifold:

    q⁻ = q + dt v + ½ dt² a,   v⁻ = v + dt a,           a of `forward_dynamics`
    δ = (S P)⁺ (y - S q⁻)                               S selects joints, P projects onto null(A)
    q̃ = q⁻ + α δ,              ṽ = v⁻ + β/dt δ
    q = q̃ - A⁺ phi(q̃),         v = ṽ - A⁺ psi(q̃, ṽ)

α and β are the gains of `joints.rate_gains`, whose white acceleration is here what the model misses
only, so that they can be much smaller. `manifold_filter` computes gains from covariances instead.
"""

import casadi as ca
import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description.status import Flag
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.dynamics.terms import Treatment, row_scale_of
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.joints import Gains, rate_gains
from mbcasadi.estimation.memory import Memory, finite_outputs
from mbcasadi.estimation.noise import Encoders
from mbcasadi.estimation.observer_guard import (
    guarded,
    known_guard,
    require_observable_dynamics,
)
from mbcasadi.linalg import CompleteFactor, complement, complete_factor, damped_pinv
from mbcasadi.qp.input_guard import LARGEST_INPUT, MASK_ON
from mbcasadi.shapes import require_identifier, require_name, require_positive
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import scalar_coordinates, start_pose

Array = NDArray[np.float64]

SETTLING = 10
"""Ticks at the start in which only the pose is found, by full steps from the start pose."""

DAMPING = 1e-2
"""Of `(S P)⁺`: a measured joint that moves a hundredth as fast as the mechanism counts half."""

OBSERVED = 1e-3
"""Least singular value of `S P` on null(A) at which encoders determine the motion of a pose."""


@checked
def velocity_observer(
    system: System,
    *,
    encoders: Encoders | None = None,
    period: float = 1e-3,
    name: str = "velocity_observer",
) -> ca.Function:
    """Return (y, valid, u, [act], [t], [mask], dt, z) → (q, v, z_next, status, flags, residual).

    - `y`, `valid`: (m,) positions of the joints with encoders, in their order, and whether to use
      each, above one half for valid; a number that is not finite is not valid.
    - `u`: that has acted since the last tick.
    - `z`: zeros at the start; the pose is then found from the start pose in 10 ticks.
    - `q`, `v`: on the manifold of the rows that act.
    - `status`: 0 estimated; 3 a sample, a control or dt is not valid, predicted without it; 4 the
      memory was broken or the estimate left all bounds, started anew.
    - `flags`: the bit GATED where a sample is not valid.
    - `residual`: (m,) what was measured minus what was predicted.

    Args:
        system: an arm or a mechanism with loops, of joints with one coordinate, without a free
            base.
        encoders: which joints have them, their noise, and the density of accelerations that the
            model misses; `Encoders()` by default. Rates are not taken from it.
        period: s, the usual dt; gains are those of it.
        name: a C identifier.

    Raises:
        ProblemError: joints of several coordinates; encoders that do not determine the motion at
            most poses, or of rates; a system with parameters or with dynamics over a step.
        UnknownNameError: no such joint.
    """
    require_identifier("name", name)
    require_positive(period=period)
    require_observable_dynamics(system)
    encoders = encoders or Encoders()
    S = np.eye(system.nv)[_measured_places(system, encoders)]
    _require_determined(system, S)
    guard = known_guard(system, period)
    known = {key: ca.MX.sym(key, *guard.size_in(key)) for key in guard.name_in()}
    memory = Memory({"q": system.nq, "v": system.nv, "age": 1})
    sizes = {"y": len(S), "valid": len(S), "z": memory.size}
    y, valid, z = (ca.MX.sym(key, size) for key, size in sizes.items())
    before, sound = memory.recalled(z, ca.DM.zeros(z.shape))
    starts, settles = before["age"] < MASK_ON, before["age"] < SETTLING
    before["q"] = ca.if_else(starts, ca.DM(start_pose(system)), before["q"])
    given = guarded(guard, known)
    used = ca.logic_and(valid > MASK_ON, ca.fabs(y) <= LARGEST_INPUT)
    gains = rate_gains(encoders, ca.DM(period))
    predicted = _predicted(system, given | before, settles)
    residual = ca.if_else(used, y - ca.DM(S) @ predicted["q"], 0)
    after = _corrected(system, given | predicted, S, residual, settles, gains)
    all_valid = ca.logic_and(ca.sum1(used) == len(S), given["valid"])
    outputs = {
        "q": after["q"],
        "v": after["v"],
        "z_next": memory.join(after | {"age": ca.fmin(before["age"] + 1, SETTLING)}),
        "status": ca.if_else(sound, ca.if_else(all_valid, 0, 3), 4),
        "flags": Flag.GATED * (ca.sum1(used) < len(S)),
        "residual": residual,
    }
    outputs = finite_outputs(outputs, {"status": 4})
    inputs = {"y": y, "valid": valid, **known, "z": z}
    return ca.Function(name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])


def _measured_places(system: System, encoders: Encoders) -> list[int]:
    """Return the places of the encoders' joints in q, which are those in v."""
    known = scalar_coordinates(system)
    if len(known) != system.nq:
        raise ProblemError(
            f"'{system.name}' has coordinates of ball or free joints; expected joints of one "
            "coordinate each: base_estimator is for robots with a free base"
        )
    if encoders.rate_noise is not None:
        raise ProblemError("rate_noise is given; expected encoders of positions only")
    names = tuple(known) if encoders.joints is None else encoders.joints
    for name in names:
        require_name("joint", name, list(known))
    return [known[name][0] for name in names]


def _require_determined(system: System, S: Array) -> None:
    """Raise unless encoders determine the motion at most of the sampled poses."""
    determined = []
    for q, _ in system.scales.states:
        at: dict[str, ca.DM] = {"q": ca.DM(q), "v": ca.DM.zeros(system.nv), "t": ca.DM(0)}
        Z = np.eye(system.nv)
        if system.nc:
            A = np.array(evaluate(system.loop_jacobian, at))
            Z = scipy.linalg.null_space(A if system.mask is None else A[system.mask > MASK_ON])
        least = np.linalg.svd(S @ Z, compute_uv=False)
        determined.append(len(least) == Z.shape[1] and bool(np.all(least > OBSERVED)))
    if np.mean(determined) < MASK_ON:
        raise ProblemError(
            f"the encoders of '{system.name}' do not determine its motion; expected encoders of as "
            "many independent joints as it has degrees of freedom"
        )


def _predicted(system: System, given: dict[str, ca.MX], settles: ca.MX) -> dict[str, ca.MX]:
    """Return q and v after dt; those of the last tick while the pose is not found yet."""
    q, v, dt = given["q"], given["v"], given["dt"]
    f = evaluate(system.actuator_force, given) if system.nu else ca.MX(system.nv, 1)
    dynamics = forward_dynamics(system, derivatives=False)
    at = given | {"f": f}
    a = dynamics(**{key: at[key] for key in dynamics.name_in()})["a"]
    return {
        "q": ca.if_else(settles, q, q + dt * v + dt**2 / 2 * a),
        "v": ca.if_else(settles, 0, v + dt * a),
    }


def _corrected(
    system: System,
    given: dict[str, ca.MX],
    S: Array,
    residual: ca.MX,
    settles: ca.MX,
    gains: Gains[ca.DM],
) -> dict[str, ca.MX]:
    """Return q and v with the innovation, on the manifold."""
    alpha = ca.if_else(settles, 1, gains.alpha)
    beta = ca.if_else(settles, 0, gains.beta)
    if system.nc == 0:
        step = ca.DM(S.T) @ residual
        return {"q": given["q"] + alpha * step, "v": given["v"] + beta / given["dt"] * step}
    factor = _rows(system, given)
    step = damped_pinv(ca.DM(S) @ complement(factor.basis.V), DAMPING) @ residual
    at = given | {"q": given["q"] + alpha * step, "v": given["v"] + beta / given["dt"] * step}
    phi, psi = evaluate(system.constraint, at), evaluate(system.loop_rate, at)
    gap = (phi, psi) if system.mask is None else (at["mask"] * phi, at["mask"] * psi)
    return {
        "q": at["q"] - factor.pinv_times(gap[0]),
        "v": at["v"] - factor.pinv_times(gap[1]),
    }


def _rows(system: System, given: dict[str, ca.MX]) -> CompleteFactor[ca.MX]:
    """Return the factored rows that act."""
    A = evaluate(system.loop_jacobian, given)
    if system.mask is not None:
        A = ca.diag(given["mask"]) @ A
    treatment = Treatment()
    return complete_factor(A, **treatment.rule(row_scale_of(system, given, treatment)))
