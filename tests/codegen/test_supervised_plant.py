"""Supervised controllers in closed loop with MuJoCo: sensors that freeze, jump and come back."""

import numpy as np
import pytest
from test_single_precision import four_bar, standing

import mbcasadi as mb
from mbcasadi import codegen, models
from mbcasadi.codegen import InputLimits, Supervision, TickEvent
from mbcasadi.plant import Plant

OMEGA = 2 * np.pi  # rad/s
FREEZE, SWING = 0.75, 2.0  # s


@pytest.fixture(scope="module")
def swinging(tmp_path_factory):
    """Return the export of a four-bar's tracking law, supervised."""
    task = mb.control.PostureTask(("crank",), kp=400.0)
    law = mb.control.InverseDynamicsQP(four_bar(), [task], name="crank_law")
    supervision = Supervision(stale_after=5, recover_after=20)
    return codegen.export_c(law, tmp_path_factory.mktemp("swing") / "c", supervision=supervision)


def fastest(project, frozen, *, supervised):
    """Return the largest speed of the crank, rad/s, and its error at the end, rad.

    The crank follows 0.5 (1 - cos ωt); while `frozen(t)` the sensors repeat their last sample.
    """
    plant = Plant(models.path("four_bar"))
    plant.reset(np.zeros(3))
    period = project.manifest["period"]
    running, memory = project.supervised(), project.memory()
    z, held, speeds = np.array(project.manifest["z0"]), None, []
    for k in range(round(SWING / period)):
        t, is_new = k * period, not frozen(k * period)
        c, s = np.cos(OMEGA * t), np.sin(OMEGA * t)
        if is_new:
            held = plant.q.copy(), plant.v.copy()
        ref = 0.5 * np.array([1 - c, OMEGA * s, OMEGA**2 * c])
        inputs = {"q": held[0], "v": held[1], "ref": ref}
        if supervised:
            u = running.step(inputs, None if is_new else running.sample)["u"]
        else:
            outputs = project.step(memory, inputs | {"z": z})
            u, z = outputs["u"], outputs["z_next"]
        plant.step(u, round(period / plant.timestep))
        speeds.append(abs(plant.v[0]))
    return max(speeds), abs(plant.q[0] - 0.5 * (1 - np.cos(OMEGA * SWING)))


def test_a_sensor_that_freezes_does_not_drive_the_mechanism(swinging):
    """The law alone sees an error that no torque changes, and drives the crank round and round."""
    speed, _ = fastest(swinging, lambda t: t > FREEZE, supervised=False)
    assert speed > 20.0
    speed, _ = fastest(swinging, lambda t: t > FREEZE, supervised=True)
    assert speed < 4.0  # the motion itself has π


@pytest.mark.long
def test_the_controller_comes_back_with_its_sensor(swinging):
    speed, error = fastest(swinging, lambda t: FREEZE < t < FREEZE + 0.1, supervised=True)
    assert speed < 4.0
    assert error < 1e-3
    _, same = fastest(swinging, lambda _: False, supervised=False)
    _, also = fastest(swinging, lambda _: False, supervised=True)
    assert same == also  # without a fault nothing changes


@pytest.fixture(scope="module")
def stand(tmp_path_factory):
    law, _ = standing()
    supervision = Supervision(
        inputs={"q": InputLimits(jump=0.02), "v": InputLimits(jump=2.0)}, recover_after=20
    )
    project = codegen.export_c(law, tmp_path_factory.mktemp("stand") / "c", supervision=supervision)
    project.manifest["flags"] = ["-O0"]  # the compiler's time would be most of the test's
    return law, project


def steps_of_control(stand, jumps, *, supervised, ticks=450):
    """Return the largest change of u between ticks, N m, and how far the trunk moves, mm."""
    law, project = stand
    plant = Plant(models.path("quadruped"))
    q0 = plant.keyframe("stand")
    plant.reset(q0)
    ref, period = law.reference_at(q0), project.manifest["period"]
    running, memory = project.supervised(), project.memory()
    z, controls, places = np.array(project.manifest["z0"]), [], []
    events = TickEvent(0)
    for k in range(ticks):
        q = plant.q.copy()
        q[9] += 0.5 * jumps(k)  # rad, of one calf's encoder
        inputs = {"q": q, "v": plant.v, "ref": ref}
        if supervised:
            controls.append(running.step(inputs)["u"])
            events |= running.events
        else:
            outputs = project.step(memory, inputs | {"z": z})
            controls.append(outputs["u"])
            z = outputs["z_next"]
        plant.step(controls[-1], round(period / plant.timestep))
        places.append(plant.q[:3].copy())
    moved = 1000 * np.abs(np.array(places)[190:] - places[190]).max()
    return np.abs(np.diff(controls, axis=0))[190:].max(), moved, events


@pytest.mark.long
def test_an_encoder_that_jumps_does_not_kick_a_standing_quadruped(stand):
    def fault(k):
        return 200 <= k < 220

    kick, moved, _ = steps_of_control(stand, fault, supervised=False)
    assert kick > 2.0
    assert moved > 1.0
    change, still, events = steps_of_control(stand, fault, supervised=True)
    assert change < 0.1 * kick
    assert still < 0.4 * moved
    assert events == TickEvent.JUMP | TickEvent.FAILED_TICK | TickEvent.TRIPPED | (
        TickEvent.SAFE | TickEvent.RECOVERED | TickEvent.FADING
    )
