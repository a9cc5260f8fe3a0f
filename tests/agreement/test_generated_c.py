"""The exported C of every formulation is the Function, and the formulations agree in C too."""

import casadi as ca
import numpy as np
import pytest
from support.admissible_states import admissible_states, call, column
from support.constrained_mechanisms import Mechanism, mechanism
from support.formulation_variants import forward_dynamics, variants
from support.motion_references import acceleration_scale, reference_motion, worst

import mbcasadi as mb

ROUNDING = 1e-12  # relative to the largest entry: the same operations, compiled
AGREEMENT_TOL = 1e-10
STATES = 200
FLAGS = ("-O0", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-pedantic")


def all_formulations(it: Mechanism) -> ca.Function:
    """Return (q, v, f, [t], [mask]) → (a_0, f_c_0, lam_0, a_1, ...), one triple a variant."""
    first = forward_dynamics(it, variants(it)[0])
    inputs = first.mx_in()
    outputs = {}
    for i, label in enumerate(variants(it)):
        fd = forward_dynamics(it, label)
        values = fd.call(inputs)
        outputs |= {f"{fd.name_out(k)}_{i}": value for k, value in enumerate(values)}
    names = list(outputs)
    return ca.Function("formulations", inputs, list(outputs.values()), first.name_in(), names)


@pytest.mark.parametrize(
    "name", ["four_bar", "climbing_particle", "euler_parameters", "switched_particles"]
)
@pytest.mark.every(4)
def test_exported_c_of_every_formulation_is_the_function(name, tmp_path):
    """With a mask, one C serves all states, each of which has other rows switched off."""
    it = mechanism(name)
    states = admissible_states(it)
    states = {key: values[:, :STATES] for key, values in states.items()}
    function = all_formulations(it)
    project = mb.export_c(function, tmp_path / "out")
    compiled = project.load(flags=FLAGS)
    expected, found = call(function, states), call(compiled, states)
    for key, values in expected.items():
        size = max(1.0, np.abs(values).max())
        error = np.abs(found[key] - values).max() / size
        assert error < ROUNDING, f"{name}: {key} in C is off by {error:.1e}"
    reference = reference_motion(it, states)
    for i, label in enumerate(variants(it)):
        off = column(found, f"a_{i}") - reference.a
        assert worst(off, acceleration_scale(reference)) < AGREEMENT_TOL, label
