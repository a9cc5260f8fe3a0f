"""One law from measurements to controls: the estimator's C, then the law's C, tick for tick."""

import re

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.tripod import LEGS, MODEL, PERIOD, START, standing

import mbcasadi as mb
from mbcasadi.codegen import InputLimits, Supervision, TickEvent
from mbcasadi.codegen.supervision.supervised import new_supervised
from mbcasadi.description.status import Flag, Status
from mbcasadi.estimation import with_estimator
from mbcasadi.validation import ReportOptions, Sensing, SensorErrors

QUICK = ("-O0",)
ROUNDING = 1e-12
BLIND = 0.05


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    """The whole with its C, and the C of estimator and law alone."""
    law, estimator = standing()
    whole, folder = with_estimator(law, estimator, blind=BLIND), tmp_path_factory.mktemp("c")
    example = {"ref": law.reference_at(START)}
    project = mb.export_c(
        whole, folder / "whole", mujoco_plugin=True, example=example,
        supervision=Supervision(inputs={"y": InputLimits(-100, 100)}, stale_after=1, trip_after=5),
    )  # fmt: skip
    alone = [
        mb.export_c(x, folder / f"{k}").load(flags=QUICK) for k, x in enumerate((estimator, law))
    ]
    return whole, project, project.load(flags=QUICK), alone


def flat(x):
    return np.array(x, dtype=float).ravel()


def close(value, expected):
    """Return whether numbers agree but for rounding; NaN and infinity are themselves."""
    value, expected = flat(value), flat(expected)
    scale = 1 + np.abs(expected[np.isfinite(expected)]).max(initial=0)
    return np.allclose(value, expected, rtol=0, atol=ROUNDING * scale, equal_nan=True)


class ByHand:
    """Estimator and law one after the other, as a program would call them."""

    def __init__(self, estimate, law, z, own):
        self.estimate, self.law, self.z, self.own = estimate, law, np.array(z), own
        self.mask, self.unsure = np.ones(len(LEGS)), 0.0

    def tick(self, y, valid, mask, ref, dt):
        found = self.estimate(y=y, valid=valid, dt=dt, mask=self.mask, z=self.z)
        self.z, status = found["z_next"], int(found["status"])
        self.mask = np.where(np.abs(mask) < 1e20, mask, self.mask)
        if status == 4:
            self.unsure = 2 * BLIND
        elif status == 3:
            self.unsure = min(self.unsure + PERIOD, 2 * BLIND)
        else:
            self.unsure = max(self.unsure - PERIOD, 0.0)
        state = {
            name: found[name] if self.unsure <= BLIND else ca.DM.nan(found[name].shape)
            for name in "qv"
        }
        out = self.law(**state, ref=ref, mask=mask, z=self.own)
        self.own = out["z_next"]
        gated = int(out["flags"]) | int(found["flags"])
        unsure = Flag.UNSURE * (status > 0 or self.unsure > 0)
        return found, out, gated + unsure


def hostile(k, rng, y, valid, mask):
    """Return what a bad robot gives in tick k, and what it breaks in the memory."""
    y, valid, mask, dt, broken = y.copy(), valid.copy(), mask.copy(), PERIOD, 0.0
    if 20 <= k < 28:
        y[:6] = np.nan  # the IMU, for less than BLIND
    if 40 <= k < 60:
        y[6 + rng.integers(6, size=3)] = np.nan
    if 80 <= k < 110:
        valid[0] = 0.0  # no IMU for longer than BLIND
    if 150 <= k < 155:
        y[:6] = 1e30 * rng.standard_normal(6)
    if 170 <= k < 180:
        dt = rng.choice([np.nan, -1.0, 1e9])
    if 190 <= k < 200:
        mask = rng.choice([0.0, 1.0, 0.6, np.nan], 3)
    if k in (210, 250):
        broken = rng.choice([np.nan, 1e300])
    return y, valid, mask, dt, broken


def test_the_one_c_is_the_estimators_then_the_laws(in_c):
    whole, _, one, (estimate, law) = in_c
    inner, sizes = whole.law, whole.estimator.z0.size
    by_hand = ByHand(estimate, law, whole.estimator.z0, inner.z0)
    z, rng, seen, safe = whole.controller.z0, np.random.default_rng(2), set(), set()
    y0, ref = whole.example_inputs()["y"], inner.reference_at(START)
    memory = sizes + 3 + 3 + 1  # of the estimate, the mask, u, and the count
    for k in range(300):
        y = y0 + 0.02 * rng.standard_normal(12)
        y, valid, mask, dt, broken = hostile(k, rng, y, np.ones(4), np.ones(3))
        if broken:
            z = flat(z)
            z[:sizes], by_hand.z = broken, np.full(sizes, broken)
        out = one(y=y, valid=valid, dt=dt, ref=ref, mask=mask, z=z)
        found, of_law, flags = by_hand.tick(y, valid, mask, ref, dt)
        z = out["z_next"]
        pairs = {"q": found["q"], "v": found["v"], "u": of_law["u"], "status": of_law["status"]}
        pairs |= {"estimate_status": found["status"], "flags": flags}
        pairs |= {"estimate_residual": found["residual"], "residual": of_law["residual"]}
        pairs["deviation"] = np.sqrt(np.diag(found["covariance"].full()))
        for name, value in pairs.items():
            assert close(out[name], value), (k, name)
        assert close(flat(z)[memory:], by_hand.own), k
        assert np.all(np.isfinite(flat(out["u"])))
        seen.add(int(out["estimate_status"]))
        safe.add((k, int(out["status"])) if out["status"] == Status.BAD_INPUT else None)
    assert seen >= {0, 3, 4}, "the estimator was blind, and was started anew"
    ticks = {entry[0] for entry in safe if entry}
    first = 80 + round(BLIND / PERIOD)
    assert min(ticks) in (first, first + 1), "a short loss of the IMU is bridged, a long one is not"
    assert {115, 211} <= ticks, "and safe for a while behind it, and behind a new start"
    assert not {140, 299} & ticks, "and then the law acts again"


def test_stale_samples_trip_the_watchdog_and_lost_ones_do_not(in_c):
    whole, project, _, _ = in_c
    law = new_supervised(project.manifest, project.build(flags=QUICK).path, 0)
    inputs = whole.example_inputs() | {"ref": whole.law.reference_at(START)}
    events = []
    for k in range(60):
        valid = np.ones(4)
        valid[1] = not 10 <= k < 20  # an encoder says so, and its number is one
        out = law.step(inputs | {"valid": valid}, sample=min(k, 40))
        events.append(law.events)
        assert np.all(np.isfinite(out["u"]))
    assert not any(events[:42])
    assert TickEvent.STALE in events[42]
    assert TickEvent.TRIPPED in events[46]
    assert TickEvent.SAFE in events[47]
    law.step(inputs | {"y": 1e3 * inputs["y"]}, sample=41)
    assert TickEvent.OUT_OF_RANGE in law.events


def test_pages_say_what_y_is(in_c):
    _, project, _, _ = in_c
    header, page = project.header.read_text(), (project.folder / "README.md").read_text()
    assert "y[3 to 5]: m/s² in the axes of imu" in header
    assert "HOLD_FROM_SENSORS_Y_GYRO_X = 0, /* rad/s */" in header
    assert "| 6 to 8 | encoder of joints a, …, c |" in page
    assert "4 arithmetic failed, started anew" in page
    assert project.manifest["sensors"][0] == {
        "name": "gyro", "kind": "gyro", "target": "imu", "rows": [0, 1, 2],
    }  # fmt: skip
    assert project.manifest["defaults"]["dt"] == [PERIOD]


def test_an_estimator_alone_has_the_same_folder(tmp_path):
    estimator = standing()[1]
    project = mb.export_c(estimator, tmp_path / "out")
    assert "encoder of joints" in (project.folder / "README.md").read_text()
    names = [entry["name"] for entry in project.manifest["inputs"]]
    assert names == ["y", "valid", "dt", "mask", "z"], "what is measured comes first"
    assert project.manifest["statuses"][3] == estimator.statuses[3]


@pytest.fixture(scope="module")
def plugin(in_c):
    """The project, its plugin loaded, and the MJCF that declares it."""
    project = in_c[1]
    built = project.build_mujoco_plugin(mujoco.__path__[0], flags=QUICK)
    mujoco.mj_loadPluginLibrary(str(built.path))
    return project, (project.folder / f"{project.name}_mujoco.xml").read_text()


def with_plugin(snippet, text=MODEL):
    included = text.replace("<worldbody>", '<include file="law.xml"/><worldbody>', 1)
    model = mujoco.MjModel.from_xml_string(included, {"law.xml": snippet.encode()})
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[2:5] = START, (-0.1, 0.2, -0.1)
    return model, data


@pytest.mark.long
def test_the_plugin_is_told_what_sensors_read_and_nothing_else(plugin, in_c):
    """It steps as a loop by hand does whose only measurements are `sensordata`, bit for bit."""
    project, snippet, one = *plugin, in_c[2]
    model, data = with_plugin(snippet)
    plain, hand = with_plugin(NO_PLUGIN.sub("", snippet))
    z = np.array(project.manifest["z0"])
    ref, sums, unsure = standing()[0].reference_at(START), [], set()
    place = project.manifest["mujoco"]["userdata"]["valid"]
    steps = round(PERIOD / model.opt.timestep)
    for k in range(300):
        lost = 200 <= k < 208  # the IMU
        valid = np.ones(4)
        valid[0] = float(not lost)
        data.userdata[place["switch"]] = lost
        data.userdata[place["first"] : place["first"] + 4] = valid
        if k % steps == 0:
            imu = np.mean(sums, axis=0) if sums else np.array([0, 0, 0, np.nan, np.nan, np.nan])
            y = np.concatenate([imu, hand.qpos[7:], hand.qvel[6:]])
            out = one(y=y, ref=ref, valid=valid, dt=PERIOD, mask=np.ones(3), z=z)
            z, hand.ctrl[:], sums = out["z_next"], flat(out["u"]), []
            unsure.add(bool(int(out["flags"]) & Flag.UNSURE))
        mujoco.mj_step(model, data)
        mujoco.mj_step(plain, hand)
        sums.append(np.array(hand.sensordata[:6]))
        assert np.array_equal(data.qpos, hand.qpos), k
        assert np.array_equal(data.ctrl, hand.ctrl), k
    assert unsure == {False, True}
    assert np.ptp(hand.ctrl) > 1e-3
    assert abs(hand.qpos[2] - START[2]) < 0.01, "it stands"


NO_PLUGIN = re.compile(r"<extension>.*</extension>", re.DOTALL)


@pytest.mark.long
def test_the_plugin_does_what_validation_does(plugin, in_c):
    whole, _, _, _ = in_c
    model, data = with_plugin(plugin[1])
    v0 = np.array(data.qvel)
    exact = {
        kind: SensorErrors(noise=0.0) for kind in ("gyro", "accelerometer", "position", "rate")
    }
    report = mb.validate(
        whole.law, MODEL, 1.0, q0=START, v0=v0, reference=whole.law.reference_at(START),
        sensors=Sensing(whole.estimator, exact), report=ReportOptions(explain=False), fast=True,
    )  # fmt: skip
    recording = report.runs[0].recording
    q, steps = [], round(PERIOD / model.opt.timestep)
    mujoco.mj_forward(model, data)  # the first reading of the IMU
    for _ in range(len(recording.t)):
        q.append(np.array(data.qpos))
        for _ in range(steps):
            mujoco.mj_step(model, data)
    moved = np.abs(recording.q - START).max()
    assert moved > 5e-3
    apart = np.abs(np.array(q) - recording.q).max()  # MuJoCo's readings are not increments
    assert apart < 0.06 * moved


def test_a_model_without_the_sensors_is_refused(plugin):
    _, snippet = plugin
    element = re.search(r"<gyro[^>]*>", snippet)[0]
    with pytest.raises(
        ValueError, match=r"reads a sensor \(gyro\) of 'imu'.*hold_from_sensors_mujoco"
    ):
        with_plugin(snippet.replace(element, ""))
    with_plugin(snippet.replace(element, "").replace("<sensor>", '<sensor><gyro site="imu"/>'))
