"""Controllers with an input p do what those made for the edited model do; the C as well."""

import dataclasses
from functools import partial

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.problems import problem
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.laws import (
    adaptive_tracking,
    computed_torque,
    dependent_regulation,
    dependent_tracking,
    hybrid_motion_force_control,
    impedance_control,
    joint_coordinates,
    passive_joint_control,
    qr_inverse_dynamics,
    quasi_velocity_force,
    quasi_velocity_tracking,
    within_limits,
)
from mbcasadi.errors import ExportError, ProblemError, ShapeError
from mbcasadi.mpc import real_time_iteration

FOUR_BAR = mb.models.path("four_bar")
CHANGED = {"body:coupler:mass": 1.5, "gravity": [0.2, 0.0, -8.0]}
EXACT = 1e-9  # relative: the same equations in another order
BY_WEIGHTS = 1e-4  # relative: weights are measured at the model's own numbers
PATTERNS = ["body:*:mass", "body:*:com", "body:coupler:inertia", "gravity", "equality:*:anchor"]


@pytest.fixture(scope="module")
def four_bar() -> mb.System:
    return mb.read_mjcf(FOUR_BAR, parameters=PATTERNS)


@pytest.fixture(scope="module")
def state(four_bar: mb.System) -> tuple[np.ndarray, np.ndarray]:
    q, v = four_bar.at().scales.states[0]
    return q, v


def law_of(system: mb.System):
    return computed_torque(system, PostureTask())


def qp_of(system: mb.System) -> InverseDynamicsQP:
    return InverseDynamicsQP(system, [PostureTask()])


LAWS = {
    "computed_torque": law_of,
    "inverse_dynamics": qp_of,
    "within_limits": lambda s: within_limits(law_of(s)),
    "dependent_tracking": lambda s: dependent_tracking(s, kd=1.0),
    "dependent_regulation": lambda s: dependent_regulation(s, kp=1.0, kd=1.0),
    "adaptive_tracking": lambda s: adaptive_tracking(s, ["body:crank:*"], kd=1.0),
    "quasi_velocity_tracking": lambda s: quasi_velocity_tracking(s, crank_of(s)),
    "quasi_velocity_force": lambda s: quasi_velocity_force(s, crank_of(s)),
    "passive_joint_control": lambda s: passive_joint_control(s, crank_of(s)),
    "hybrid_motion_force_control": lambda s: hybrid_motion_force_control(s, crank_of(s)),
    "impedance_control": lambda s: impedance_control(s, PostureTask(), stiffness=1.0, damping=1.0),
    "qr_inverse_dynamics": lambda s: qr_inverse_dynamics(s, PostureTask()),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.every(5)
def test_a_controller_at_p_is_that_of_the_model_with_these_numbers(name, four_bar, state) -> None:
    own = ("computed_torque", "inverse_dynamics")
    system = four_bar if name in own else mb.read_mjcf(FOUR_BAR, parameters=[*CHANGED])
    law, expected, plain = (LAWS[name](s) for s in (system, system.at(CHANGED), system.at()))
    tolerance = BY_WEIGHTS if name == "inverse_dynamics" else EXACT
    q, slow = state[0], 0.05 * state[1]  # inside the limits of the controls
    ref, p = law.reference_at(q), system.parameter_values(CHANGED)
    assert_array_equal(ref, expected.reference_at(q))
    there, here = law.solve(q, slow, ref=ref, p=p), law.solve(q, slow, ref=ref)
    wanted, usual = (each.solve(q, slow, ref=ref) for each in (expected, plain))
    assert (there.status, here.status) == (wanted.status, usual.status)
    assert_allclose(there.u, wanted.u, rtol=tolerance)
    assert_allclose(here.u, usual.u, rtol=tolerance)
    assert np.abs(there.u - here.u).max() > 0.1 * np.abs(there.u).max()


def crank_of(system: mb.System):
    return joint_coordinates(system, ["crank"])


SPRING = """
<mujoco><worldbody><body name="arm" gravcomp="0">
    <joint name="hinge" axis="0 1 0" stiffness="2e13" springref="0.1"/>
    <geom size="10" pos="0 0 300" mass="1000"/></body></worldbody>
  <actuator><position name="servo" joint="hinge" kp="3e11" kv="2e10"/></actuator></mujoco>
"""  # in mm and g: 20 N m/rad are 2e13 g mm²/s²


def test_parameters_may_be_as_large_as_their_units_make_them() -> None:
    system = mb.read_mjcf(SPRING, parameters=["joint:hinge:stiffness"])
    changed = {"joint:hinge:stiffness": 5e13}
    law, expected = law_of(system), law_of(system.at(changed))
    qp = InverseDynamicsQP(system, [PostureTask()])
    found = law.solve([0.2], [0.1], p=system.parameter_values(changed))
    assert found.solved
    assert qp.solve([0.2], [0.1], p=system.parameter_values(changed)).status == 0
    assert_allclose(found.u, expected.solve([0.2], [0.1]).u, rtol=EXACT)


def test_gains_of_servos_are_numbers_unless_the_force_is_that_at_the_start() -> None:
    system = mb.read_mjcf(SPRING, parameters=["actuator:servo:*"])
    refused(ProblemError, r"actuator:servo:bias: how a servo", lambda: qp_of(system))
    changed = {"actuator:servo:bias.length": -4e11, "actuator:servo:gain.constant": 5e11}
    make = partial(InverseDynamicsQP, tasks=[PostureTask()], servo_plant="start")
    found = make(system).solve([0.2], [0.1], p=system.parameter_values(changed))
    expected = make(system.at(changed)).solve([0.2], [0.1])
    assert found.status == expected.status == 0
    assert_allclose(found.u, expected.u, rtol=BY_WEIGHTS)
    gain = mb.read_mjcf(SPRING, parameters=["actuator:servo:gain"])
    stronger = {"actuator:servo:gain": [5e11]}
    found = qp_of(gain).solve([0.2], [0.1], p=gain.parameter_values(stronger))
    expected = qp_of(gain.at(stronger)).solve([0.2], [0.1])
    assert_allclose(found.u, expected.u, rtol=BY_WEIGHTS)


@pytest.mark.parametrize("wrong", [-1.0, 0.0, np.nan, np.inf])
def test_what_no_mechanism_has_is_bad_input(wrong: float, four_bar, state) -> None:
    law, qp = law_of(four_bar), qp_of(four_bar)
    p = four_bar.parameter_values({"body:coupler:mass": 1.0})
    p[four_bar.parameters.names.index("body:coupler:mass")] = wrong
    for controller in (law, qp):
        solution = controller.solve(*state, p=p)
        assert "bad input" in solution.status_text
        assert np.all(np.isfinite(solution.u))
    refused(ShapeError, "p has", lambda: law.solve(*state, p=p[1:]))


def test_the_c_takes_p_and_a_null_p_is_the_model(four_bar, state, tmp_path) -> None:
    law = law_of(four_bar)
    project = mb.export_c(law, tmp_path / "law")
    header = (tmp_path / "law" / "computed_torque.h").read_text()
    assert "a null p as computed_torque_p_default" in header
    p = four_bar.parameter_values(CHANGED)
    inputs = {"q": state[0], "v": state[1], "ref": law.reference_at(state[0]), "z": law.z0, "p": p}
    ours, c = law.function(**inputs), project.load()(**inputs)
    for name in ("u", "status"):
        assert_allclose(np.array(c[name]), np.array(ours[name]), rtol=EXACT)


def test_a_known_error_of_the_plant_is_compensated_by_p(four_bar) -> None:
    law, q0 = law_of(four_bar), np.asarray(four_bar.tree.q0)
    known = four_bar.parameter_values(
        {"body:coupler:mass": 1.5 * four_bar.at().tree.bodies[2].mass}
    )
    given = {"rigid": True, "q0": q0, "reference": law.reference_at(q0)}
    given["perturb"] = {"body:coupler:mass": 0.5}
    runs = [
        mb.validate(law, FOUR_BAR, 0.3, scenario=mb.validation.ScenarioOptions(p=p), **given).runs[
            0
        ]
        for p in (None, known)
    ]
    without, with_p = (np.abs(run.recording.monitor["error"][-1]).max() for run in runs)
    assert with_p < 0.1 * without
    assert np.array_equal(runs[1].recording.p[0], known)


def test_mpc_plans_with_the_parameters_of_each_sample() -> None:
    system = mb.read_mjcf(mb.models.path("cart_pole"), parameters=["body:pole:mass", "gravity"])
    changed = {"body:pole:mass": 0.4, "gravity": [0.5, 0.0, -9.0]}

    def plan_of(mechanism: mb.System):
        weights = {"Q": [1.0] * 2 * mechanism.nv, "R": [0.1] * mechanism.nu}
        return real_time_iteration(problem(mechanism, 5, 0.02, **weights))

    mpc, expected = plan_of(system), plan_of(system.at(changed))
    p = system.parameter_values(changed)
    q, v = system.tree.q0, np.zeros(system.nv)
    given = mpc.reference({f"physical{k}": p for k in range(6)})
    assert_allclose(mpc.solve(q, v, given).u, expected.solve(q, v).u, rtol=BY_WEIGHTS)
    assert np.abs(mpc.solve(q, v, given).u - mpc.solve(q, v).u).max() > 1e-3
    wrong = mpc.reference({"physical3": -p})
    assert "bad input" in mpc.solve(q, v, wrong).status_text


def test_dynamics_take_p_and_have_its_derivatives(four_bar, state) -> None:
    fd = mb.forward_dynamics(four_bar, derivatives=False)
    p, f = four_bar.parameter_values(CHANGED), np.ones(four_bar.nv)
    expected = mb.forward_dynamics(four_bar.at(CHANGED), derivatives=False)(*state, f)
    for ours, reference in zip(fd(*state, f, p), expected, strict=True):
        assert_allclose(np.array(ours), np.array(reference), rtol=EXACT, atol=EXACT)
    J = np.array(fd.jacobian()(q=state[0], v=state[1], f=f, p=p)["jac_a_p"])
    for k in range(p.size):
        step = 1e-6 * np.eye(p.size)[k]
        difference = (fd(*state, f, p + step)[0] - fd(*state, f, p - step)[0]) / 2e-6
        scale = 1 + np.abs(np.array(difference)).max()
        assert np.abs(J[:, k] - np.array(difference).ravel()).max() < 1e-6 * scale


def test_a_contract_without_entries_for_p_is_refused(four_bar, tmp_path) -> None:
    law = law_of(four_bar)
    broken = dataclasses.replace(law.controller, parameters=())
    refused(ExportError, "physical parameters", lambda: mb.export_c(broken, tmp_path / "broken"))


def test_a_system_without_parameters_refuses_p(state) -> None:
    law = law_of(mb.read_mjcf(FOUR_BAR))
    refused(ProblemError, "has no input 'p'", lambda: law.solve(*state, p=ca.DM(1)))
