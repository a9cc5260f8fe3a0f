"""The residual of a robot that stands: the forces of its feet, or none where they are rows."""

import numpy as np
import pytest
from observed_mechanisms import (
    GAIN,
    QUIET,
    feet_of,
    force_projector_of,
    observed,
    standing,
    start_of,
    system_of,
)

from mbcasadi.contacts import with_contacts
from mbcasadi.estimation import momentum_observer, residual_forces


@pytest.mark.parametrize("push", [(10.0, 5.0, -30.0), None])
@pytest.mark.every(2)
def test_the_residual_of_a_standing_robot_is_that_of_its_feet(push):
    system = system_of("quadruped")
    feet = feet_of(system)
    observer, forces = momentum_observer(system, gain=GAIN, **QUIET), residual_forces(system, feet)
    z = 0
    for plant, u in standing(push):
        out = observed(observer, q=plant.q, v=plant.v, u=u, dt=plant.timestep, z=z)
        z = out["z_next"]
    external = plant.data.qfrc_constraint + plant.external_force
    assert np.linalg.norm(plant.data.qfrc_constraint) > 100
    assert np.linalg.norm(out["residual"] - external) < 0.005 * np.linalg.norm(external)
    f = np.array(forces(plant.q, out["residual"])).reshape(-1, 3)
    measured = plant.contact_forces_at({foot.frame: foot.place for foot in feet})
    for foot, own in zip(feet, f, strict=True):
        force = measured[foot.frame][0]
        assert force.normal > 25
        assert own[0] == pytest.approx(force.normal, rel=0.01)
        assert own[1:] == pytest.approx(force.force[:2], abs=0.01 * force.normal)
    assert out["collision"], "feet that are no rows are external"


def test_feet_that_are_rows_leave_the_push_on_the_trunk_alone():
    system = system_of("quadruped")
    walker = with_contacts(system, feet_of(system)).with_mask()
    observer = momentum_observer(walker, gain=GAIN, rate_noise=2e-3, force_noise=0.2)
    P = force_projector_of(walker)
    push, z, hits, r = np.array([10.0, 5.0, -30.0]), 0, [], []
    for plant, u in standing(push):
        on = np.ones(walker.nc)
        out = observed(observer, q=plant.q, v=plant.v, u=u, mask=on, dt=plant.timestep, z=z)
        z = out["z_next"]
        hits.append(out["collision"][0])
        r.append(out["residual"])
    expected = P(plant.q) @ plant.external_force
    assert np.linalg.norm(expected) > 5
    assert np.linalg.norm(r[-1] - expected) < 0.02 * np.linalg.norm(expected)
    assert np.linalg.norm(r[990]) < 0.02 * np.linalg.norm(expected)
    assert not any(hits[500:1000])
    assert all(hits[1050:])


def test_rows_that_go_off_count_until_the_end_of_the_tick():
    system = system_of("quadruped")
    walker = with_contacts(system, feet_of(system)).with_mask()
    observer = momentum_observer(walker, gain=1e9, **QUIET)
    q, v = start_of(system), np.zeros(18)
    weight = np.array(system.bias_force(q, v)).ravel()
    on, off = np.ones(walker.nc), np.zeros(walker.nc)
    still = {"q": q, "v": v, "u": 0, "dt": 1e-3}
    z = observed(observer, mask=on, z=0, **still)["z_next"]
    last = observed(observer, mask=off, z=z, **still)
    in_air = observed(observer, mask=off, z=last["z_next"], **still)
    assert in_air["residual"] == pytest.approx(weight, abs=1e-9)
    assert last["residual"] == pytest.approx(force_projector_of(walker)(q) @ weight, abs=1e-6)
