"""Estimators over long runs: hostile ticks, and a million ticks of loops with few encoders.

cd tests && python -m estimation.endurance [base | loop | four_bar | slider_crank | planar_3rrr]
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
from estimation.drawn_mechanism import truth_fun
from estimation.long_runs import NOISE, PERIOD, swing, through_singular_poses

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.estimation import (
    Encoders,
    Estimator,
    FilterOptions,
    Fix,
    Imu,
    Measured,
    UnknownForce,
    base_estimator,
    manifold_filter,
)

HOSTILE, LONG = 100_000, 1_000_000  # ticks
BASE_PERIOD = 0.005  # s
BLOCK = 1.0  # s of hostile ticks, then as long good ones
FLAGS = ("-O1",)

Record = Callable[..., dict]


def compiled(function, folder: Path) -> Record:
    """Return the C of a Function, as arrays by name."""
    loaded = export_c(function, folder / function.name()).load(flags=FLAGS)
    return lambda **inputs: {key: np.array(x) for key, x in loaded(**inputs).items()}


def twisted(rng, sizes: dict[str, int], good: dict, kind: int) -> dict:
    """Return the inputs of a hostile tick of one of eleven kinds."""
    given = {key: np.array(x, dtype=float) for key, x in good.items()}
    y, ny = given["y"], sizes["y"]
    if kind == 0:
        y[rng.integers(ny)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e30])
    elif kind == 1:
        y[rng.integers(ny)] += rng.normal() * 10 ** rng.uniform(-3, 6)
    elif kind == 2:
        y[:] = rng.choice([0.0, 0.7])  # stuck
    elif kind == 3:
        given["dt"] = rng.choice([0, -1, np.nan, np.inf, 0.05, 0.1, 10.0, 1e-9])
    elif kind == 4:
        given["valid"] = rng.choice([0.0, 1.0, np.nan], sizes["valid"])
    elif kind == 5:
        given["valid"] = np.zeros(sizes["valid"])
    elif kind == 6:
        for key in set(given) & {"mask", "u"}:
            given[key] = rng.choice([0.0, 1.0, np.nan, -5.0, 1e12], sizes[key])
    elif kind == 7 and "mask" in given:
        given["mask"] = np.zeros(sizes["mask"])
    elif kind == 8 and "age" in given:
        given["age"] = rng.choice([0.0, 0.011, 0.029, 1.0, -1.0, np.nan], sizes["age"])
    elif kind == 9:
        given["y"] = y + rng.normal(0, 10.0 ** rng.integers(-2, 3), ny)
    return given


def hostile(estimator: Estimator, call: Record, next_good, ticks: int, error) -> str:
    """Return what became of a run of hostile blocks, each with a second of good samples behind.

    Args:
        estimator: and its C.
        call: its C.
        next_good: () → inputs of a good tick, whose truth goes on in all ticks.
        ticks: number of them.
        error: outputs → largest error of the estimate at the end of a good second, in its unit.
    """
    rng, z = np.random.default_rng(0), estimator.z0
    sizes = {key: estimator.function.numel_in(key) for key in estimator.function.name_in()}
    block = round(BLOCK / estimator.period)
    bad, seen, worst, unsound = [0, 0, 0, 0], set(), [0.0, 0.0], 0.0
    for k in range(ticks):
        given, inside = next_good(), k % (2 * block) < block
        given = twisted(rng, sizes, given, int(rng.integers(12))) if inside else given
        broken = inside and rng.random() < 2e-3
        if broken:
            z = np.ravel(z) * rng.choice([np.nan, 1e30, -1.0, 0.0], z.size)
        out = call(z=z, **given)
        z, P, status = out["z_next"], out["covariance"], int(out["status"].item())
        seen.add(status)
        bad[0] += not all(np.isfinite(x).all() for x in out.values())
        worst[0] = max(worst[0], float(np.abs(out["v"]).max()))
        scale = np.sqrt(np.maximum(np.diag(P), 1e-30))
        if k % 20 == 0:
            unsound = min(unsound, float(np.linalg.eigvalsh(P / np.outer(scale, scale))[0]))
        bad[1] += inside and not broken and status == 0 and not np.isfinite(given["y"][:3]).all()
        if (k + 1) % max(ticks // 10, 1) == 0:
            print(f"{estimator.name}: {k + 1} of {ticks} ticks", file=sys.stderr, flush=True)
        if k % (2 * block) == 2 * block - 1:
            bad[2] += status != 0
            worst[1] = max(worst[1], error(out))
    return (
        f"{estimator.name}: {ticks} ticks, {bad[0]} not finite, fastest {worst[0]:.3g}, least "
        f"eigenvalue {unsound:.1e}, statuses {sorted(seen)}, not recovered {bad[2]} of "
        f"{ticks // (2 * block)}, error then {worst[1]:.2g}"
    )


def hostile_base(folder: Path, ticks: int) -> str:
    """Return what became of our quadruped, which stands, with motion capture that is late."""
    system = mb.read_mjcf(mb.models.path("quadruped"))
    stand = np.array(system.tree.keyframes["stand"], dtype=float)
    estimator = base_estimator(
        system, [mb.Contact(name) for name in ("FL", "FR", "RL", "RR")], imu=Imu("trunk"),
        encoders=Encoders(rate_noise=0.02), q0=stand, period=BASE_PERIOD,
        fixes=[Fix("pose", "trunk", noise=1e-3, turn_noise=3e-3, longest_delay=0.03)],
    )  # fmt: skip
    y0, rng = estimator.y0.copy(), np.random.default_rng(1)
    pose = next(s.rows[0] for s in estimator.sensors if s.kind.startswith("frame"))
    y0[pose : pose + 7] = stand[:7]
    noise = np.zeros(y0.size)
    for sensor in estimator.sensors:
        density = np.sqrt(BASE_PERIOD) if sensor.density else 1.0
        noise[list(sensor.rows)] = sensor.noise / density

    def good() -> dict:
        y = y0 + noise * rng.standard_normal(y0.size)
        return {"y": y, "valid": np.ones(14), "mask": np.ones(4), "age": 0.0, "dt": BASE_PERIOD}

    def error(out: dict) -> float:
        q = np.ravel(out["q"])
        gap = np.array(system.difference(stand, q)).ravel()[:6]
        return float(np.abs([*gap, *np.ravel(out["v"])[:3]]).max())

    return hostile(estimator, compiled(estimator.function, folder), good, ticks, error)


def hostile_loop(folder: Path, ticks: int) -> str:
    """Return what became of a four-bar with two encoders and a disturbing torque."""
    system = mb.read_mjcf(mb.models.path("four_bar"))
    sensors = [Measured(k, NOISE, kind="position", turns=k == "crank") for k in ("crank", "rocker")]
    estimator = manifold_filter(
        system, sensors, force_noise=0.02, disturbances=[UnknownForce("crank", 0.1, 0.2)],
        options=FilterOptions(position=0.02),
    )  # fmt: skip
    truth, ticks_of = compiled(truth_fun(system, PERIOD, 1), folder), count()
    rng, state = np.random.default_rng(1), {"q": np.zeros(3), "v": np.zeros(3)}

    def good() -> dict:
        u = 0.5 * np.sin(6 * PERIOD * next(ticks_of))
        white = 0.02 / np.sqrt(PERIOD) * rng.standard_normal(3)
        f = np.array(system.actuator_force(state["q"], state["v"], u)).ravel() + white
        out = truth(q=state["q"], v=state["v"], f=f)
        state["q"], state["v"] = (np.ravel(x) for x in out.values())
        y = state["q"][[0, 2]] + NOISE * rng.standard_normal(2)
        return {"y": y, "valid": np.ones(2), "u": u, "dt": PERIOD}

    def error(out: dict) -> float:
        gap = np.ravel(out["q"]) - state["q"]
        return float(np.abs((gap + np.pi) % (2 * np.pi) - np.pi).max())

    return hostile(estimator, compiled(estimator.function, folder), good, ticks, error)


RUNS = {
    "base": lambda folder, ticks: hostile_base(folder, ticks or HOSTILE),
    "loop": lambda folder, ticks: hostile_loop(folder, ticks or HOSTILE),
    "four_bar": lambda folder, ticks: swing(folder, "four_bar", ("crank",), 0.02, ticks or LONG),
    "slider_crank": lambda folder, ticks: through_singular_poses(folder, ticks or LONG),
    "planar_3rrr": lambda folder, ticks: swing(
        folder, "planar_3rrr", ("proximal_a", "proximal_b"), 2e-3, ticks or LONG
    ),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="estimation.endurance", description=__doc__)
    parser.add_argument("run", nargs="*", choices=[*RUNS], default=[])
    parser.add_argument("--ticks", type=int, default=0, help="in place of the usual number")
    chosen = parser.parse_args()
    for each in chosen.run or RUNS:
        with tempfile.TemporaryDirectory(prefix="mbcasadi-endurance-") as own:
            print(RUNS[each](Path(own), chosen.ticks), flush=True)
