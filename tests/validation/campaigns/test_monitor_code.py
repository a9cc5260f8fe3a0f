"""The monitor of a controller as C against CasADi's evaluation of it, with another QP solver."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.inverse_dynamics.inspection import monitor_fun
from mbcasadi.description import Contact
from mbcasadi.plant import Plant
from mbcasadi.validation.campaigns.kit import monitor_code
from mbcasadi.validation.metrics.contact_metrics import predicted_margin

TASKS = [FrameTask("hip", position="xz", orientation="", kp=100.0), PostureTask(kp=100.0)]


@pytest.mark.parametrize("levels", [[], [["hip"], ["posture"]]], ids=["one level", "cascade"])
@pytest.mark.every(2)
def test_the_c_of_a_monitor_gives_targets_errors_and_contact_forces(levels):
    path = models.path("planar_biped")
    system, plant = mb.read_mjcf(path), Plant(path)
    feet = [Contact(name, friction=0.7) for name in ("left_foot", "right_foot")]
    law = InverseDynamicsQP(system, tasks=TASKS, contacts=feet, levels=levels, name="biped")
    data = law.controller
    code = monitor_code(data)
    assert code is not None
    compiled, rng = code.install().load(), np.random.default_rng(2)
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


def test_forces_of_a_solution_that_fails_its_check_are_not_a_number_and_are_not_judged():
    """CasADi's plugin may fail where the controller's own solver does not."""
    law = InverseDynamicsQP(
        mb.read_mjcf("planar_biped"), TASKS, [Contact("left_foot", friction=0.7)], name="biped"
    )
    solution, inspect = law._solution, law._inspect
    inputs = {name: ca.MX.sym(name, solution.sparsity_in(name)) for name in solution.name_in()}
    outputs = solution(**inputs) | {"status": ca.if_else(inputs["v"][0] > 1, 4, 0)}
    failing = ca.Function(
        "failing", [*inputs.values()], [outputs[n] for n in solution.name_out()],
        [*inputs], solution.name_out(),
    )  # fmt: skip
    monitor = monitor_fun(failing, inspect)
    q = Plant("planar_biped").q
    at = {"q": q, "ref": law.reference_at(q), "mask": np.ones(len(law.mask_names)), "z": law.z0}
    at = {name: x for name, x in at.items() if name in monitor.name_in()}
    fine, failed = (monitor(**at, v=[speed, *[0] * (law.system.nv - 1)]) for speed in (0.0, 2.0))
    assert np.isfinite(np.array(fine["contact_force"])).all()
    assert np.isnan(np.array(failed["contact_force"])).all()
    assert np.isfinite(np.array(failed["error"])).all()
    forces = np.array([[1.0, 0.0, 0.2], [np.nan] * 3, [1.0, 0.0, 0.1]])
    recording = SimpleNamespace(monitor={"contact_force": forces}, ticks=3)
    margin = predicted_margin(law.controller, recording)
    np.testing.assert_allclose(margin[:, 0], [1 - 0.2 / 0.7, np.nan, 1 - 0.1 / 0.7])
