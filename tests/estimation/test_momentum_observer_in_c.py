"""The momentum observer as C, on bad input, and its refusals."""

import numpy as np
import pytest
from observed_mechanisms import GAIN, QUIET, observed, start_of, system_of
from support.compiled import compiled

import mbcasadi as mb
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.estimation import momentum_observer, residual_forces


@pytest.mark.parametrize("name", ["scara", "four_bar", "quadruped"])
def test_generated_c_gives_the_same(name, tmp_path):
    system, rng = system_of(name), np.random.default_rng(5)
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    in_c = compiled(observer, tmp_path)
    z = np.zeros(observer.numel_in("z"))
    for k in range(5):
        q, v = system.scales.states[k % len(system.scales.states)]
        u = rng.standard_normal(system.nu)
        inputs = {"q": q, "v": v, "u": u, "dt": 1e-3, "z": z}
        ours, theirs = observed(observer, **inputs), observed(in_c, **inputs)
        for key, value in ours.items():
            assert theirs[key] == pytest.approx(value, rel=1e-9, abs=1e-9), key
        z = ours["z_next"]


@pytest.mark.parametrize(("real", "rounding"), [("double", 1e-9), ("float", 1e-3)])
def test_an_export_gives_the_same_in_double_and_in_float(real, rounding, tmp_path):
    system = system_of("four_bar")
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    exported = mb.export_c(observer, tmp_path / "observer", real=real).load()
    q, z, z_c = start_of(system), 0, 0
    for k in range(50):
        v = 0.01 * k * np.ones(3)
        inputs = {"q": q, "v": v, "u": 0.2, "dt": 1e-3}
        ours, theirs = observed(observer, **inputs, z=z), observed(exported, **inputs, z=z_c)
        z, z_c = ours["z_next"], theirs["z_next"]
        assert theirs["residual"] == pytest.approx(ours["residual"], abs=rounding)
    assert np.linalg.norm(ours["residual"]) > 0.01


@pytest.mark.parametrize("name", ["q", "v", "u", "dt"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e30])
@pytest.mark.every(3)
def test_bad_input_keeps_the_residual_and_the_next_sample_goes_on(name, bad):
    system = system_of("scara")
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    good = {"q": start_of(system), "v": np.zeros(4), "u": np.zeros(4), "dt": 1e-3}
    z = 0
    for _ in range(400):
        before = observed(observer, **good, z=z)
        z = before["z_next"]
    load = np.array(system.bias_force(good["q"], good["v"])).ravel()
    assert before["residual"] == pytest.approx(load, abs=1e-6)
    assert before["collision"]
    spoilt = good | {name: np.full(np.size(good[name]), bad)}
    out = observed(observer, **spoilt, z=z)
    assert out["status"] == 3
    assert out["flags"] == mb.description.status.Flag.GATED
    assert out["residual"] == pytest.approx(before["residual"])
    assert out["collision"]
    for _ in range(3):
        out = observed(observer, **good, z=out["z_next"])
        assert out["status"] == 0
        assert out["residual"] == pytest.approx(load, abs=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e25])
def test_a_broken_memory_is_a_new_start(bad):
    system = system_of("four_bar")
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    good = {"q": start_of(system), "v": np.zeros(3), "u": 0, "dt": 1e-3}
    out = observed(observer, **good, z=np.full(observer.numel_in("z"), bad))
    assert out["status"] == 4
    assert out["residual"] == pytest.approx(np.zeros(3))
    assert observed(observer, **good, z=out["z_next"])["status"] == 0


def test_a_rate_beyond_all_bounds_leaves_finite_outputs():
    system = system_of("scara")
    observer = momentum_observer(system, gain=GAIN, **QUIET)
    rng = np.random.default_rng(0)
    for scale in 10.0 ** np.arange(0, 20, 2):
        v, z = scale * rng.standard_normal(4), rng.standard_normal(observer.numel_in("z"))
        out = observed(observer, q=start_of(system), v=v, u=v, dt=1e-3, z=z)
        assert all(np.all(np.isfinite(value)) for value in out.values())


def test_wrong_arguments_are_refused():
    system = system_of("scara")
    with pytest.raises(ProblemError, match=r"gain = -1"):
        momentum_observer(system, gain=-1.0, **QUIET)
    with pytest.raises(ProblemError, match=r"false_alarm = 1\.5; expected a share"):
        momentum_observer(system, gain=1.0, false_alarm=1.5, **QUIET)
    with pytest.raises(ShapeError, match=r"rate_noise.*\(4,\)"):
        momentum_observer(system, gain=1.0, rate_noise=[1.0, 1.0], force_noise=1.0)
    with pytest.raises(
        ProblemError, match=r"force_noise is 0\.0; expected standard deviations above 0"
    ):
        momentum_observer(system, gain=1.0, rate_noise=1.0, force_noise=0.0)
    weighed = mb.read_mjcf(mb.models.path("scara"), parameters=["body:hand:mass"])
    with pytest.raises(ProblemError, match="has physical parameters"):
        momentum_observer(weighed, gain=1.0, **QUIET)
    with pytest.raises(ProblemError, match="without contacts"):
        residual_forces(system, [])
