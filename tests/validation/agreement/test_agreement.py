"""The comparison finds what is wrong, names it, and finds nothing else."""

import dataclasses

import mujoco
import numpy as np
import pytest
from support.hard_cases import ACTUATORS, EQUALITIES, HARD_CASES, JOINTS, REFUSED

from mbcasadi.errors import ModelError, UnknownNameError
from mbcasadi.system import read_mjcf
from mbcasadi.system.from_mjcf import member_builders
from mbcasadi.system.model_numbers import ModelNumbers
from mbcasadi.validation.agreement import agreement_with_mujoco, judge

CASE = EQUALITIES["weld with anchor, relpose and torquescale"]
JOINTS_WITHOUT_ACTUATORS = HARD_CASES["gravity compensation by actuators, no actuator"]
VISIBLE = 1e-6  # a real mistake is far above rounding


def altered(system, change):
    """Return the system of a changed tree."""
    assert system.tree is not None
    tree = change(system.tree)
    builders = member_builders(ModelNumbers(tree, system.actuators, system.equalities))
    return dataclasses.replace(system, tree=tree, builders=builders, _cache={}, _frames={})


def test_a_nan_is_an_infinite_error_and_never_passes():
    def broken(tree):
        return dataclasses.replace(tree, gravity=np.full(3, np.nan))

    model = mujoco.MjModel.from_xml_string(CASE)
    results = {
        r.quantity: r
        for r in agreement_with_mujoco(altered(read_mjcf(CASE), broken), model, states=2)
    }
    assert results["bias_force"].error == np.inf
    assert not results["bias_force"].agrees


def test_a_refused_member_is_listed_with_its_reason():
    case = REFUSED["fluid"]
    results = agreement_with_mujoco(
        read_mjcf(case.xml), mujoco.MjModel.from_xml_string(case.xml), states=2
    )
    (absent,) = (result for result in results if np.isnan(result.error))
    assert absent.quantity == "passive_force"
    assert "density" in absent.note
    assert not absent.agrees


def test_what_is_not_compared_fails_unless_it_is_allowed():
    xml = REFUSED["fluid"].xml
    results = agreement_with_mujoco(read_mjcf(xml), mujoco.MjModel.from_xml_string(xml), states=2)
    verdict = judge(results)
    assert (verdict.passed, verdict.not_compared) == (False, ("passive_force",))
    assert judge(results, allow_missing=["passive_force"]).passed
    assert not judge([], 1.0).passed  # nothing was compared
    with pytest.raises(UnknownNameError, match="unknown quantity 'damping'; valid: 'mass_matrix'"):
        judge(results, allow_missing=["damping"])


def test_motors_with_and_without_cogging_agree():
    motor = '<dcmotor joint="j" resistance="2" motorconst=".1"'
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><joint name="j"/><geom size=".1" pos="0 0 -.3"/></body>'
        f'</worldbody><actuator>{motor}/>{motor} cogging=".1 6 .2"/></actuator></mujoco>'
    )
    assert judge(agreement_with_mujoco(read_mjcf(model), model, states=3)).passed


def test_actuator_forces_are_compared_without_actuators():
    xml = JOINTS_WITHOUT_ACTUATORS
    system, model = read_mjcf(xml), mujoco.MjModel.from_xml_string(xml)
    assert judge(agreement_with_mujoco(system, model, states=3)).passed

    def routed(tree):
        joints = [dataclasses.replace(joint, compensation="actuator") for joint in tree.joints]
        return dataclasses.replace(tree, joints=tuple(joints))

    verdict = judge(agreement_with_mujoco(altered(system, routed), model, states=3))
    assert set(verdict.differing) >= {"actuator_force", "actuator_bias"}


def test_a_system_of_another_model_is_an_error():
    other = mujoco.MjModel.from_xml_string(JOINTS["several joints on one body"])
    with pytest.raises(ModelError, match=r"has \(nq, nv, nu\) = .* expected a system read from"):
        agreement_with_mujoco(read_mjcf(CASE), other)


def test_the_model_is_not_changed():
    xml = ACTUATORS["control and force ranges"]
    model = mujoco.MjModel.from_xml_string(xml)
    before = (int(model.opt.disableflags), model.actuator_ctrllimited.copy())
    agreement_with_mujoco(read_mjcf(xml), model, states=2)
    assert int(model.opt.disableflags) == before[0]
    assert np.array_equal(model.actuator_ctrllimited, before[1])


def test_the_same_seed_gives_the_same_result():
    model, system = mujoco.MjModel.from_xml_string(CASE), read_mjcf(CASE)
    assert agreement_with_mujoco(system, model, states=2, seed=3) == agreement_with_mujoco(
        system, model, states=2, seed=3
    )


def test_a_model_without_joints_is_compared_too():
    xml = "<mujoco><worldbody><geom size='.1'/><site name='s'/></worldbody></mujoco>"
    results = agreement_with_mujoco(read_mjcf(xml), mujoco.MjModel.from_xml_string(xml), states=1)
    assert all(result.agrees for result in results)
