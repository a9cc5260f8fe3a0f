"""The C of what is computed of a mechanism is the Function."""

import numpy as np
from support.admissible_states import admissible_states
from support.compiled import all_compiled
from support.constrained_mechanisms import mechanism

from mbcasadi.dynamics import forward_dynamics_derivatives
from mbcasadi.dynamics.null_space_functions import null_space_inverse_dynamics, null_space_terms
from mbcasadi.dynamics.projection_functions import force_channels, projection_terms
from mbcasadi.dynamics.quasi_velocity_functions import quasi_velocity_motion, quasi_velocity_terms
from mbcasadi.dynamics.udwadia_kalaba_functions import udwadia_kalaba_terms
from mbcasadi.dynamics.virtual_mass_functions import virtual_mass_terms

STATES = 3
ROUNDING = 1e-11  # relative; conditions of M below 1e4
FUNCTIONS = {
    forward_dynamics_derivatives: "bennett",
    null_space_inverse_dynamics: "four_bar",
    null_space_terms: "four_bar",
    force_channels: "four_bar",
    projection_terms: "four_bar",
    quasi_velocity_motion: "four_bar",
    quasi_velocity_terms: "four_bar",
    udwadia_kalaba_terms: "four_bar",
    virtual_mass_terms: "moving_pendulum",
}


def test_generated_c_equals_the_function(tmp_path):
    """At admissible states; what these do not have is random."""
    functions = {build(mechanism(name).system): name for build, name in FUNCTIONS.items()}
    loaded, rng = all_compiled(list(functions), tmp_path), np.random.default_rng(54)
    for f, name in functions.items():
        states = admissible_states(mechanism(name), STATES)
        for k in range(STATES):
            at = {
                x: states[x][:, k] if x in states else rng.standard_normal(f.size_in(x))
                for x in f.name_in()
            }
            found = loaded[f.name()](**at)
            for key, expected in f(**at).items():
                size = max(1.0, np.abs(expected.full()).max(initial=0.0))
                close = {"atol": ROUNDING * size, "err_msg": f"{f.name()} {key}"}
                np.testing.assert_allclose(found[key], expected, **close)
