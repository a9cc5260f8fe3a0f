"""An arm on a surface: the error in quasi-velocities decays [A10, §4-5].

The desired velocity s leads to the path. `‖ε‖² / 2`, the kinetic energy of `v - s`, obeys
`‖ε(t)‖ = ‖ε(0)‖ exp(-K_d t)`, because the Coriolis term Γ is skew here; the one that A10 prints is
not. In MuJoCo, as C at 1 kHz, the decay ends at the softness of its constraints, and with 10 % more
mass and a push at the effect of these errors.

You will see the decay, the errors, and the report of the gain condition.
"""

import sys
from functools import partial

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import laws
from mbcasadi.plots import curves_of, save_figure
from mbcasadi.validation import ReportOptions

MODEL = models.path("prr_arm")
K_P, K_D = 3.0, 5.0  # 1/s  [A10, section 5]
EARLY, DURATION = 500, 7.2  # ticks; s, the path leaves the arm's reach after 7.36 s
MEAN = np.array([0.5, np.pi / 12])  # m, rad: of the path
OFFSET = np.array([-0.1, 0.2])  # m, rad: where the arm starts beside its path, at rest
ERRORS = {
    "perturb": {"mass": 0.1},
    "disturbance": lambda t: [0.0, 0.0, 0.0, 10.0 * (4.0 <= t < 4.5)],  # N on the tip; s
    "delay": 1,
    "report": ReportOptions(explain=False),
}
PLANTS = {"MuJoCo": {}, "wrong mass, push": ERRORS}


def path(law: laws.Law, t: float) -> np.ndarray:
    """Return the reference of A10, section 5."""
    size, w = np.array([0.3, np.pi / 6]), np.array([0.6 * np.pi, np.pi])
    wave, rate = size * np.sin(w * t), size * w * np.cos(w * t)
    return law.reference(theta_q=MEAN + wave, theta_v=rate, theta_a=-(w**2) * wave)


def start(law: laws.Law) -> np.ndarray:
    """Return q with the tip on the surface beside its path, and the elbow below the base."""
    place, lean = path(law, 0.0)[:2] + OFFSET
    q2 = -np.arccos(place - np.sin(lean))
    q3 = lean - np.pi / 2 - q2
    return np.array([-np.sin(q2) - np.sin(q2 + q3), q2, q3, place])


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return t, ‖ε‖ and the error of θ of each motion."""
    system, q, gains, found = mb.read_mjcf(MODEL), ca.SX.sym("q", 4), {"kp": K_P, "kd": K_D}, {}
    place = ca.Function("theta", [q], [ca.vertcat(q[3], q[1] + q[2] + np.pi / 2)])
    theta = laws.function_coordinates(system, place, names=("tip", "lean"), units=("m", "rad"))
    law = laws.quasi_velocity_tracking(system, theta, **gains)
    epsilon = laws.composite_error(system, theta, kp=K_P)
    for name, errors in PLANTS.items():
        options = {"reference": partial(path, law), "q0": start(law)} | errors
        run = mb.validate(law, MODEL, DURATION, **options).runs[0]
        record, t = run.recording, run.recording.t
        values = epsilon.map(t.size)(record.q.T, record.v.T, record.ref.T).full()
        found[name] = {"t": t, "q": record.q, "v": record.v, "error": record.monitor["error"]}
        length = found[name]["epsilon"] = np.linalg.norm(values, axis=0)
        rate = np.log(length[0] / length[EARLY]) / t[EARLY]
        rms, tick = 1e3 * run.metric("tracking.rms"), 1e6 * run.metric("time.median")
        print(f"{name}: the error decays at {rate:.2f} 1/s in the first {t[EARLY]:g} s; ", end="")
        print(f"{rms:.0f} mm or mrad RMS, one tick {tick:.1f} µs")
    q, v = (found["MuJoCo"][key][2000::20] for key in ("q", "v"))  # on the path
    print(laws.gain_condition(system, theta, q, v, **gains).in_words)
    if figure is not None:
        titles = {"composite error, √kg m/s": "epsilon"}
        save_figure(figure, curves_of(found, titles), log=list(titles))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
