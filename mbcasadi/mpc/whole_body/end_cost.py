"""The cost at the end of a plan by a regulator: of the gait, of the stance, or none.

The gait on the spot repeats itself after a stride, with references of `HorizonReferences`; the
periodic Riccati equation about it has a cost for each of its samples. These differ by a tenth, and
their mean is that of the end, whatever sample it is at. Without a gait, or where the gait's has no
solution, the cost is that of the regulator at rest on all feet; a state that the feet exclude there
costs nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.parts.rigid_springs import RigidSprings
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.ground_axes import common_normal
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.make_problem import ProblemPart
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.regulator_weight import periodic_weights, regulator_weight
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences
from mbcasadi.mpc.whole_body.static_references import static_references, with_static_references

WEIGHTS, REGULATOR = "weights", "regulator"
ENDS = (WEIGHTS, REGULATOR)


def with_regulator(
    parts: Sequence[ProblemPart],
    refs: HorizonReferences,
    u: Array,
    *,
    walks: bool,
    springs: RigidSprings | None = None,
) -> tuple[list[ProblemPart], str]:
    """Return the parts whose `Cost` has the regulator's `Q_end`, and which regulator it is.

    Args:
        parts: costs of the problem, one of them a `Cost` of the setpoint.
        refs: of the problem with these parts.
        u: (nu,) controls that hold the pose in which all feet stand.
        walks: whether there is a gait, not a stand.
        springs: that the law holds.

    Raises:
        ProblemError: no such `Cost`, or several.
    """
    own = [part for part in parts if isinstance(part, Cost) and part.has_setpoint]
    if len(own) != 1:
        raise ProblemError(
            f"end='{REGULATOR}' and {len(own)} costs of the setpoint; expected one Cost with Q"
        )
    weight, words = _regulator(refs, u, walks=walks, springs=springs)
    return [replace(part, Q_end=weight) if part is own[0] else part for part in parts], words


def _regulator(
    refs: HorizonReferences, u: Array, *, walks: bool, springs: RigidSprings | None
) -> tuple[Array | None, str]:
    """Return `Q_end` and which regulator it is of, in words; None where there is none."""
    samples, why = _stride(refs, springs), ""
    if walks:
        try:
            weights = periodic_weights(refs.ocp, *_about(refs, samples))
        except ProblemError as error:
            why = f"; of the gait none: {error}"
        else:
            return weights.mean(axis=0), "periodic Riccati equation of the gait"
    samples[0, slot_slices(refs.ocp.slots)["mask"]] = 1
    rest = np.concatenate([refs.q0, np.zeros(refs.system.nv)])
    try:
        weight = regulator_weight(refs.ocp, rest, u, samples[0])
    except ProblemError as error:
        return None, f"none, no regulator of the stance: {error}{why}"
    return weight, f"regulator of the stance{why}"


def _stride(refs: HorizonReferences, springs: RigidSprings | None = None) -> Array:
    """Return p (K, np) of the samples of a stride on the spot, K nearest to their period."""
    ocp, gait = refs.ocp, refs.gait
    spot = replace(refs, standing=None)
    asked, z = spot.function("asked"), ca.DM(spot.z0)
    inputs = {key: ca.DM.zeros(asked.numel_in(key)) for key in asked.name_in()}
    normal, all_samples = common_normal(refs.contacts), ca.MX.sym("ref", asked.numel_out("ref"))
    static = static_references(
        refs.system, refs.contacts, refs.q0, normal, ocp.period, springs=springs
    )
    filled = with_static_references(ocp, static, all_samples)[: ocp.np_]
    first = ca.Function("first", [all_samples], [filled])
    count = max(round(gait.period / ocp.period), 1)
    samples = []
    for k in range(2 * count):  # in the first stride feet leave the ground from where they stand
        time = gait.start + k * gait.period / count
        found = asked(**inputs | {"q": ca.DM(refs.q0), "t": ca.DM(time), "z": z})
        z = ca.DM(found["z_next"])
        samples.append(np.array(ca.DM(first(found["ref"]))).ravel())
    return np.array(samples[count:])


def _about(refs: HorizonReferences, samples: Array) -> tuple[Array, Array, Array]:
    """Return states, controls and p of samples: those of their setpoints."""
    places = slot_slices(refs.ocp.slots)
    states = [samples[:, places[f"setpoint.{key}"]] for key in ("q", "v")]
    return np.hstack(states), samples[:, places["setpoint.u"]], samples
