"""The benchmark of the laws times every case once, and prints its table."""

from bench.law_cases import CASES, inputs, system_of


def test_a_record_has_closed_states_and_all_inputs():
    law = CASES[0].build(system_of(CASES[0].model))
    values = inputs(law, 20)
    assert list(values) == law.function.name_in()[:-1]
    phi = law.system.constraint.map(values["q"].shape[1])(values["q"]).full()
    assert abs(phi).max() < 1e-9


def test_a_driven_mechanism_has_one_motor_at_every_joint():
    for model in {case.model for case in CASES if case.model.endswith("_driven")}:
        system = system_of(model)
        assert [each.name for each in system.actuators] == [j.name for j in system.tree.joints]
