"""One law from measurements to controls: the estimator's C, then the law's C, tick for tick."""

import subprocess

import casadi as ca
import numpy as np
import pytest
from support.tripod import LEGS, PERIOD, START, standing

import mbcasadi as mb
from mbcasadi.codegen.example_run import CLOSE_FLOAT
from mbcasadi.description.status import Flag, Status
from mbcasadi.estimation import with_estimator

QUICK = ("-O0",)
ROUNDING = 1e-12
BLIND = 0.05


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    """The whole with its C, and the C of estimator and law alone."""
    law, estimator = standing()
    whole, folder = with_estimator(law, estimator, blind=BLIND), tmp_path_factory.mktemp("c")
    project = mb.export_c(whole, folder / "whole")
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


def test_the_exported_program_agrees_with_its_record(in_c):
    _, project, _, _ = in_c
    program = project.build_example(flags=QUICK).path
    text = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    assert "u equals the record" in text


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


def test_float_is_near_double(tmp_path, in_c):
    whole, _, one, _ = in_c
    single = mb.export_c(whole, tmp_path / "out", real="float").load(flags=QUICK)
    given = {"y": whole.example_inputs()["y"], "ref": whole.law.reference_at(START)}
    z = dict.fromkeys((one, single), whole.controller.z0)
    for _ in range(20):
        out = {f: f(**given, z=z[f]) for f in z}
        z = {f: each["z_next"] for f, each in out.items()}
    largest = np.abs(flat(out[one]["u"])).max()
    for name, near in (("u", CLOSE_FLOAT * largest), ("q", 1e-4), ("v", 1e-3)):
        assert flat(out[single][name]) == pytest.approx(flat(out[one][name]), abs=near)
    assert out[single]["status"] == 0
