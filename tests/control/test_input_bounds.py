"""Which inputs are refused does not depend on units, and none that overflows gets through.

A jib that carries its load on a trolley, by hand: with the trolley at x, the boom at φ and
the load m in the plane (x cos φ, x sin φ) of gravity g along -y, the forces at rest are

    m g x cos φ   at the boom,    m g sin φ   at the trolley.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.laws import LawOptions, computed_torque
from mbcasadi.description.status import Status
from mbcasadi.mpc import optimal_control_problem, real_time_iteration
from mbcasadi.mpc.ocp.cost import Cost

LENGTH, MASS, GRAVITY = 40.0, 2e5, 9.81  # m, kg, m/s²: a large crane
UNITS = {"m, kg": (1.0, 1.0), "mm, g": (1e3, 1e3), "km, t": (1e-3, 1e-3)}
SAME = 1e-6  # the bias of `torque_weight`, 1e-7
FAR, TOO_FAR = 1e9, 1e16  # m; 1e12 times a size between 1 and 1e3 m is between them
MAGNITUDES = 10.0 ** np.arange(0, 309, 14)


def crane(m, kg):
    """Return the jib in units of which a metre has m and a kilogram kg."""
    inertia = f'diaginertia="{kg * m**2} {kg * m**2} {kg * m**2}"'
    return mb.read_mjcf(
        f'<mujoco><compiler angle="radian" boundmass="0"/>'
        f'<option gravity="0 {-GRAVITY * m} 0"/><worldbody><body><joint name="boom" axis="0 0 1"/>'
        f'<inertial pos="0 0 0" mass="{MASS * kg}" {inertia}/><body>'
        f'<joint name="trolley" type="slide" axis="1 0 0" ref="{LENGTH * m}"/>'
        f'<inertial pos="{LENGTH * m} 0 0" mass="{MASS * kg}" {inertia}/></body></body></worldbody>'
        f'<actuator><motor joint="boom"/><motor joint="trolley"/></actuator></mujoco>'
    )


def weight(q, m, kg):
    """Return the forces at rest; q in the user's units, its places along the boom from its end."""
    force = MASS * kg * GRAVITY * m
    return np.array([force * q[1] * np.cos(q[0]), force * np.sin(q[0])])


def controllers(m, kg):
    """Return (controller, reference that holds a pose) of each kind."""
    system = crane(m, kg)
    limits = np.array([3 * MASS * kg * GRAVITY * LENGTH * m**2, 3 * MASS * kg * GRAVITY * m])
    limits = np.column_stack([-limits, limits])
    qp = InverseDynamicsQP(system, [PostureTask(kp=1.0)], ctrl_limits=limits, torque_reference=True)
    law = computed_torque(system, PostureTask(kp=1.0), options=LawOptions(ctrl_limits=limits))
    zeros = np.zeros(4)
    return {
        "qp": (qp.controller, lambda q: np.concatenate([q, zeros, weight(q, m, kg)])),
        "law": (law.controller, lambda q: np.concatenate([q, zeros])),
    }


def evaluate(controller, **values):
    f = controller.function
    default = {"z": controller.z0, "v": np.zeros(2)}
    given = [(default | values).get(name, np.zeros(f.numel_in(name))) for name in f.name_in()]
    return {n: np.array(x).ravel() for n, x in zip(f.name_out(), f.call(given), strict=True)}


@pytest.fixture(scope="module", params=list(UNITS))
def units(request):
    return UNITS[request.param]


@pytest.fixture(scope="module")
def laws(units):
    return controllers(*units)


@pytest.mark.parametrize("kind", ["qp", "law"])
def test_a_large_crane_is_held_in_any_units(kind, units, laws):
    (m, kg), (controller, hold) = units, laws[kind]
    for angle in (0.0, 0.4):
        q = np.array([angle, LENGTH * m])
        out = evaluate(controller, q=q, ref=hold(q))
        assert out["status"] == Status.SOLVED
        assert_allclose(out["u"], weight(q, m, kg), rtol=SAME, atol=SAME * kg * m)


@pytest.mark.parametrize("kind", ["qp", "law"])
def test_the_place_from_which_a_measurement_counts_as_wrong_is_one_length_in_any_units(
    kind, units, laws
):
    m, (controller, hold) = units[0], laws[kind]
    reference = hold(np.array([0.0, LENGTH * m]))
    for name, far, too_far in (("q", FAR, TOO_FAR), ("v", FAR, TOO_FAR)):
        state = {"q": np.array([0.0, LENGTH * m]), "v": np.zeros(2)}
        for value, is_bad in ((far, False), (too_far, True)):
            state[name] = np.array([0.0, value * m])
            out = evaluate(controller, ref=reference, **state)
            assert (out["status"] == Status.BAD_INPUT) == is_bad


@pytest.mark.parametrize("kind", ["qp", "law"])
def test_inputs_of_any_size_give_a_bounded_control_and_never_a_wrong_one(kind, units, laws):
    """Where a reference is far, the control of the boom is at the limit on its side."""
    m, (controller, hold) = units[0], laws[kind]
    q, seen = np.array([0.1, LENGTH * m]), set()
    for name in ("q", "v", "ref", "z"):
        size = controller.function.numel_in(name)
        for entry in range(min(size, 6)):
            for value in MAGNITUDES:
                inputs = {"q": q, "v": np.zeros(2), "ref": hold(q), "z": controller.z0}
                inputs[name] = np.array(inputs[name], dtype=float)
                inputs[name][entry] = value
                out = evaluate(controller, **inputs)
                u, status = out["u"], int(out["status"][0])
                seen.add(status)
                assert np.all((controller.u_min <= u) & (u <= controller.u_max))
                assert np.all(np.isfinite(out["z_next"]))
                far = name == "ref" and entry == 4 and value > 1e8 * m  # acceleration of the boom
                if far and status <= 1 and kind == "law":
                    assert_allclose(u[0], controller.u_max[0], rtol=SAME)
                if value > 1e24 and name != "z":
                    assert status == Status.BAD_INPUT
    assert {Status.SOLVED, Status.BAD_INPUT} <= seen


def test_real_time_iteration_refuses_the_same_places(units):
    m, kg = units
    ocp = optimal_control_problem(
        crane(m, kg), 2, 0.01, [Cost(Q=[1, m**-2, 1, m**-2], R=[1e-3 / (kg * m**2) ** 2] * 2)]
    )
    controller = real_time_iteration(ocp).controller
    ref = ocp.parameters(setpoint_q=[0.0, LENGTH * m]).ravel()
    for x, is_bad in ((0.0, False), (FAR, False), (TOO_FAR, True), (np.nan, True)):
        q = np.array([0.0, LENGTH * m + x * m])
        out = evaluate(controller, q=q, ref=ref)
        assert (out["status"] == Status.BAD_INPUT) == is_bad
        assert np.all(np.isfinite(out["u"]))
