"""The law that `export` writes is the one that `validate` runs, and neither is built twice."""

import tomllib

import pytest

from mbcasadi import models
from mbcasadi.control.inverse_dynamics import controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.run import fitted_to_plant
from mbcasadi.validation.spec import (
    build_experiment,
    build_exported,
    example_inputs,
    parse_spec,
    propose_spec,
)

MODEL = models.path("scara")
FILE = """
type = "inverse_dynamics_qp"
period = 0.002
[[task]]
type = "posture"
kp = 50
[limits.joint]
[observer]
bandwidth = 5.0
[validation]
delay = 2
"""


@pytest.fixture
def builds(monkeypatch):
    """Return the delays of the laws whose equations are built."""
    built, make_stages = [], controller.make_stages
    monkeypatch.setattr(
        controller, "make_stages", lambda law: built.append(law.delay) or make_stages(law)
    )
    return built


def test_the_exported_law_is_made_for_the_delay_of_its_trial(builds):
    spec = parse_spec(tomllib.loads(FILE))
    exported = build_exported(spec, MODEL)
    validated = fitted_to_plant(build_experiment(spec, MODEL).controller, Plant(MODEL), 2)
    assert exported.controller.delay == validated.delay == 2
    assert exported.controller.z0.size == validated.z0.size
    assert example_inputs(exported)[""]["q"].size == 4
    assert builds.count(2) == 2  # one each


def test_a_proposal_builds_one_law(builds):
    propose_spec(MODEL)
    assert len(builds) == 1


def test_errors_of_equations_that_are_built_late_are_the_same(monkeypatch):
    def fails(_law):
        raise ProblemError("no equations")

    monkeypatch.setattr(controller, "make_stages", fails)
    with pytest.raises(ProblemError, match="no equations"):
        build_exported(parse_spec(tomllib.loads(FILE)), MODEL).controller.controller  # noqa: B018
