"""The monitor of a controller as C against CasADi's evaluation of it, with another QP solver."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.plant import Plant
from mbcasadi.validation.campaigns.kit import monitor_code
from mbcasadi.validation.campaigns.shipping import install_code

TASKS = [FrameTask("hip", position="xz", orientation="", kp=100.0), PostureTask(kp=100.0)]


@pytest.mark.parametrize("levels", [[], [["hip"], ["posture"]]], ids=["one level", "cascade"])
def test_the_c_of_a_monitor_gives_targets_errors_and_contact_forces(levels):
    path = models.path("planar_biped")
    system, plant = mb.read_mjcf(path), Plant(path)
    feet = [Contact(name, friction=0.7) for name in ("left_foot", "right_foot")]
    law = InverseDynamicsQP(system, tasks=TASKS, contacts=feet, levels=levels, name="biped")
    data = law.controller
    code = monitor_code(data)
    assert code is not None
    compiled, rng = install_code(code).load(), np.random.default_rng(2)
    for _ in range(5):
        inputs = {
            "q": plant.integrate(None, rng.uniform(-0.1, 0.1, plant.nv)),
            "v": rng.uniform(-0.5, 0.5, plant.nv),
            "ref": law.reference_at(plant.q) + rng.uniform(-0.01, 0.01, law.nref),
            "mask": np.arange(len(law.mask_names)) < len(feet),  # the feet are not pinned
            "z": data.z0,
        }
        known = {name: inputs[name] for name in data.monitor.name_in()}
        expected = data.monitor(**known)
        found = compiled(**{name: inputs[name] for name in compiled.name_in() if name in inputs})
        for name in data.monitor.name_out():
            exact = np.array(expected[name]).ravel()
            size = max(1.0, np.abs(exact).max())
            np.testing.assert_allclose(
                np.array(found[name]).ravel(), exact, atol=1e-7 * size, err_msg=name
            )
    assert np.abs(np.array(expected["contact_force"])).max() > 1.0
