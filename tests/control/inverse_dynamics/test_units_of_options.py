"""Options of the inverse dynamics in other units: what has a meaning agrees, over a run of ticks.

The linkage has a pin that is said twice, so rows are redundant and loads are shared.
"""

import numpy as np
import pytest
from support.unit_systems import (
    OTHERS,
    SI,
    assert_same,
    controls_of,
    forces_of,
    linkage,
    rates_of,
    state_in,
)

from mbcasadi.control import (
    ActuatorLimits,
    DisturbanceObserver,
    ForceFeedback,
    InverseDynamicsQP,
    JointLimits,
    LoadSharing,
    LoopForceLimits,
    LoopForceWeights,
    PostureTask,
    SoftLimit,
)

TICKS = 5
AGREE = 1e-7  # relative; five ticks of factors of a condition up to 1e6 in other roundings


def weights_of(u, names):
    """Return the weights of accelerations that are one in SI."""
    kinds = {"cart": u.m, "crank": 1.0, "rod": 1.0, "slider": u.m}
    return [1.0 / (kinds[name] / u.s**2) ** 2 for name in names]


def tasks_of(u):
    return [
        PostureTask(names, kp=60.0 / u.s**2, weight=weights_of(u, names), name=names[0])
        for names in (("crank",), ("cart",))
    ]


def loop_forces(u):
    """Weights and ranges of the pin; the cost of a force is in the units of the tasks' cost."""
    return {
        "loop_force_weights": LoopForceWeights({"pin": 1e-3 / u.force**2}),
        "loop_force_limits": LoopForceLimits({"pin": np.array([-30.0, 30.0]) * u.force}),
        "sharing": LoadSharing(),
        "force_reference": True,
        "force_feedback": ForceFeedback(limit=5.0 * u.force, gain=5.0 / u.s),
    }


def limits(u):
    cart = JointLimits(("cart",), velocity=0.29 * u.m / u.s, braking=3.0 * u.m / u.s**2)
    return {
        "joint_limits": cart,
        "soft": [SoftLimit("joints", price=1.0)],
        "actuator_limits": ActuatorLimits(("crank", "geared"), rate=40.0 * u.torque / u.s),
    }


OPTIONS = {
    "observer, delay": lambda u: {
        "observer": DisturbanceObserver(bandwidth=20.0 / u.s),
        "delay": 1,
        "torque_rate_weight": 1e-5,
    },
    "levels": lambda _: {"levels": [["crank"], ["cart"]]},
    "loop forces": loop_forces,
    "limits": limits,
}


def run(u, options):
    """Return what five ticks with errors of the model compute, in SI."""
    law = InverseDynamicsQP(
        linkage(u), tasks_of(u), period=2e-3 * u.s, torque_weight=1e-5, **OPTIONS[options](u)
    )
    q, v = state_in(u)
    ref = law.reference_at(q)
    ref[law.reference_slices["crank.q"]] += 0.2
    ref[law.reference_slices["cart.q"]] += 0.1 * u.m
    if "loop_force" in law.reference_slices:
        ref[law.reference_slices["loop_force"]] += 3.0 * u.force
    found, z = {"status": [], "u": [], "a": [], "force": []}, law.z0
    found |= {"learned": [], "relaxed": []}
    for k in range(TICKS):
        given = {}
        if law.force_feedback is not None:
            given["f_measured"] = ref[law.reference_slices["loop_force"]] - 0.5 * k * u.force
        solution = law.solve(q, v + 1e-3 * k * rates_of(u), ref, z=z, **given)
        z = solution.z_next
        A = np.array(law.system.constraint_jacobian(q))
        found["status"].append(solution.status)
        found["u"].append(solution.u / controls_of(u))
        found["a"].append(solution.a / rates_of(u) * u.s)
        found["force"].append(A.T @ solution.lam / forces_of(u))
        found["relaxed"].append(sum(solution.relaxed.values()) / u.m * u.s**2)  # of the cart
        found["learned"].append(solution.disturbance / forces_of(u))
    return found


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("options", OPTIONS)
def test_options_agree_in_all_units(options, units):
    expected, found = run(SI, options), run(units, options)
    assert expected["status"] == found["status"] == [0] * TICKS
    for key in ("u", "a", "force", "learned", "relaxed"):
        assert_same(found[key], expected[key], AGREE, key)
    learned, relaxed = (np.abs(expected[key]).max() for key in ("learned", "relaxed"))
    assert (learned > 1e-3, relaxed > 1e-3) == ("observer" in options, options == "limits")
