"""A model with wrong masses: identification from noisy encoders and torques.

Two arms meet in one pin, and nobody measures its force: along null(A) it drops out. Masses and
inertias of the CAD model are 30 % off. The robot follows sums of sines in MuJoCo by a law with
that model. Weighted least squares gives the 17 combinations of 48 parameters that forces depend on,
and the parameters of real bodies, next to CAD, that fit.

You will see the error of the torques that both models predict for another motion.
"""

import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import laws
from mbcasadi.identification import Samples, filtered_samples, identify, predicted_controls
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("five_bar")
CAD = {"left_proximal": 1.3, "left_distal": 1.3, "right_proximal": 0.7, "right_distal": 1.3}
MOTORS = ("left_proximal", "right_proximal")
ENCODER, TORQUE = 1e-4, 0.05  # rad and N m, standard deviations of the noise
CUTOFF, EVERY = 15.0, 5  # Hz, ticks of 1 ms
RATES = 2 * np.pi * np.array([0.3, 0.7, 1.1, 1.7, 2.3])  # rad/s
SIZES = 0.13 / (1 + RATES / RATES[2])  # rad


def cad() -> mb.System:
    """Return the robot with wrong masses and inertias."""
    names = [f"body:{body}:{what}" for body in CAD for what in ("mass", "inertia")]
    system = mb.read_mjcf(MODEL, parameters=names)
    values, places = system.parameters.values, system.parameters.slices
    return system.at({name: CAD[name.split(":")[1]] * values[places[name]] for name in names})


def measured(law: laws.Law, duration: float, seed: int) -> Samples:
    """Return what is measured of a motion in MuJoCo along sines with random phases."""
    rng, home = np.random.default_rng(seed), law.reference()[: len(MOTORS)]
    phases = rng.uniform(0, 2 * np.pi, (len(MOTORS), RATES.size))

    def reference(t: float) -> np.ndarray:
        time, pace = (t * t / 2, t) if t < 1 else (t - 0.5, 1.0)  # from rest to full pace in 1 s
        wave = RATES * time + phases
        v, bend = np.cos(wave) @ (SIZES * RATES), np.sin(wave) @ (SIZES * RATES**2)
        motion = {"theta_q": home + (np.sin(wave) - np.sin(phases)) @ SIZES, "theta_v": pace * v}
        return law.reference(motion, theta_a=float(t < 1) * v - pace**2 * bend)

    report = mb.validation.ReportOptions(explain=False)
    options = {"reference": reference, "fast": True, "report": report}
    run = mb.validate(law, MODEL, duration, **options).runs[0].recording
    q, u = (x + s * rng.standard_normal(x.shape) for x, s in ((run.q, ENCODER), (run.u, TORQUE)))
    return filtered_samples(law.system, run.t, q, u, cutoff=CUTOFF, every=EVERY)


def main(figure: str | None = None) -> dict[str, object]:
    """Return the identification, and torques of another motion with their errors in percent."""
    system = cad()
    theta = laws.joint_coordinates(system, MOTORS)
    law = laws.passive_joint_control(system, theta, kp=400.0)
    found = identify(system, measured(law, 6.0, seed=1))
    other = measured(law, 4.0, seed=2)
    torque = {"measured": other.f[:, [0, 2]]}
    for name, values in (("CAD", found.parameters.values), ("identified", found.theta)):
        torque[name] = predicted_controls(system, other, found.parameters, values)
    share = {name: np.linalg.norm(u - torque["measured"]) for name, u in torque.items()}
    error = {name: 100 * x / np.linalg.norm(torque["measured"]) for name, x in share.items()}
    print(f"{len(found.base)} combinations of {len(found.theta)} parameters, ", end="")
    print(f"{len(found.undetermined)} not determined; torques of another motion are ", end="")
    print(f"{error['CAD']:.1f} % off by CAD, {error['identified']:.1f} % by what was identified")
    if figure is not None:
        t = np.arange(len(other)) * EVERY * law.period
        curves = {name: {"t": t, "u": u[:, 0]} for name, u in torque.items()}
        save_figure(figure, curves_of(curves, {"torque of the left motor, N m": "u"}))
    return {"identification": found, "error": error, "torque": torque}


if __name__ == "__main__":
    main(*sys.argv[1:])
