"""One rule for all controllers: NaN or a huge number in any measured or reference entry is bad.

Also where nothing reads the entry: whoever fills it is broken, and a later version may read it.
"""

from functools import cache

import numpy as np
import pytest
from support.mpc_mechanisms import sliding_mass

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.regulators import encoders, kalman, lqg, lqr, lqr_gain
from mbcasadi.description.status import Status
from mbcasadi.mpc import (
    LinearModel,
    LinearOptions,
    SingleRigidBody,
    linear_mpc,
    lti_mpc,
    offset_free_lti,
    offset_free_mpc,
    optimal_control_problem,
    real_time_iteration,
    single_rigid_body_mpc,
)
from mbcasadi.mpc.ocp.cost import Cost

# The second state drives nothing that has a cost, and its setpoint none either.
MODEL = LinearModel.of([[0.9, 0.0], [0.1, 0.5]], [[0.1], [0.0]], 0.1)
Q = [1.0, 0.0]


@cache
def four_bar():
    system = mb.read_mjcf(models.path("four_bar"))
    return mb.linearize(system, mb.equilibrium(system))


def filtered():
    linear = four_bar()
    W = np.repeat([0.0, 1.0], linear.system.nv)
    estimator = kalman(linear, encoders(linear.system, ["crank"]), W, 1e-6, period=0.01)
    return lqg(estimator, lqr_gain(linear, np.ones(6), 1.0, period=0.01).K)


def mechanism(make, *tracked, **options):
    return make(four_bar(), LinearOptions(4, np.repeat([1.0, 0.0], 3), 1.0, **options), *tracked)


def legged():
    body = SingleRigidBody(12.0, np.diag([0.07, 0.26, 0.24]), friction=0.5, f_max=90.0)
    return single_rigid_body_mpc(body, 2, np.r_[np.ones(6), np.zeros(6)], 1e-4, period=0.03)


KINDS = {
    "plain model": lambda: lti_mpc(MODEL, LinearOptions(3, Q, 1.0, P=np.diag(Q))),
    "plain model, sparse": lambda: lti_mpc(
        MODEL, LinearOptions(3, Q, 1.0, P=np.diag(Q), form="sparse")
    ),
    "plain model, preview": lambda: lti_mpc(
        MODEL, LinearOptions(3, Q, 1.0, P=np.diag(Q), preview=True)
    ),
    "offset-free plain model": lambda: offset_free_lti(
        MODEL, LinearOptions(3, Q, 1.0, P=np.diag(Q)), [[1.0, 0.0]]
    ),
    "mechanism": lambda: mechanism(linear_mpc),
    "mechanism, sparse": lambda: mechanism(linear_mpc, form="sparse"),
    "mechanism, multipliers": lambda: mechanism(linear_mpc, form="multipliers"),
    "offset-free mechanism": lambda: mechanism(offset_free_mpc, np.eye(6)[:1]),
    "real-time iteration": lambda: real_time_iteration(
        optimal_control_problem(sliding_mass(), 3, 0.1, [Cost(Q=Q, R=1.0)])
    ),
    "legged": legged,
    "regulator": lambda: lqr(four_bar(), np.repeat([1.0, 0.0], 3), 1.0),
    "filter and regulator": filtered,
    "inverse dynamics": lambda: InverseDynamicsQP(
        four_bar().system, [PostureTask(kp=0.0, kd=0.0, weight=[1.0, 0.0, 0.0])]
    ),
}


def good_inputs(controller, made):
    """Return inputs with which the controller solves."""
    rng, values = np.random.default_rng(0), {}
    for signal in controller.inputs:
        values[signal.name] = np.zeros(len(signal.components))
    values["z"] = controller.z0
    if "q" in values and values["q"].size == 3:
        values["q"] = four_bar().q + 1e-3 * rng.standard_normal(3)
    if "mask" in values:
        values["mask"] = np.ones_like(values["mask"])
    if "feet" in values:
        feet = [[0.2, 0.13, -0.3], [0.2, -0.13, -0.3], [-0.2, 0.13, -0.3], [-0.2, -0.13, -0.3]]
        values["feet"] = np.ravel(feet)
    return values


@pytest.mark.parametrize("kind", KINDS)
def test_each_entry_that_is_no_number_is_bad_input(kind):
    made = KINDS[kind]()
    controller = made.controller
    good = good_inputs(controller, made)
    call = lambda values: controller.function(*values.values())  # noqa: E731
    assert int(call(good)[2]) != Status.BAD_INPUT
    for name, value in good.items():
        if name == "z":
            continue
        for entry in range(value.size):
            far = (1e13,) if name in ("q", "v") else ()  # of the mechanism's own size
            for bad in (np.nan, -np.inf, 1e21, *far):
                wrong = value.copy()
                wrong[entry] = bad
                out = call(good | {name: wrong})
                assert int(out[2]) == Status.BAD_INPUT, f"{name}[{entry}] = {bad}"
                assert np.all(np.isfinite(np.array(out[0])))
                assert np.all(np.isfinite(np.array(out[1])))


def test_the_c_has_the_same_rule(tmp_path):
    made = KINDS["offset-free plain model"]()
    program = export_c(made, tmp_path / "c").load(flags=("-O0",))
    good = good_inputs(made.controller, made)
    for entry in range(good["ref"].size):
        ref = np.where(np.arange(good["ref"].size) == entry, np.nan, good["ref"])
        assert int(program(*(good | {"ref": ref}).values())[2]) == Status.BAD_INPUT
