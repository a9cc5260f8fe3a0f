"""A parallel robot with wrong masses in its model: identification from noisy encoders and torques.

Two arms meet in one pin: the constraint force is not measured, and drops out along null(A). Masses
and inertias of the CAD model are up to 30 % off. The robot follows a sum of sines in MuJoCo, by a
law that has the wrong model. Weighted least squares gives the 17 combinations of 48 parameters that
the motion depends on, and the parameters of real bodies next to CAD that fit.

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
FACTORS = {"left_proximal": 1.3, "left_distal": 1.3, "right_proximal": 0.7, "right_distal": 1.3}
MOTORS = ("left_proximal", "right_proximal")
ENCODER, TORQUE = 1e-4, 0.05  # rad and N m, standard deviations of the noise
CUTOFF, EVERY = 15.0, 5  # Hz, ticks of 1 ms
RATES = 2 * np.pi * np.array([0.3, 0.7, 1.1, 1.7, 2.3])  # rad/s, of the sines
SWING = 0.3  # rad, of both motors


def cad() -> mb.System:
    """Return the robot with wrong masses and inertias."""
    names = [f"body:{body}:{what}" for body in FACTORS for what in ("mass", "inertia")]
    system = mb.read_mjcf(MODEL, parameters=names)
    values, places = system.parameters.values, system.parameters.slices
    return system.at({name: FACTORS[name.split(":")[1]] * values[places[name]] for name in names})


def record(law: laws.Law, duration: float, seed: int) -> mb.validation.Recording:
    """Return a motion in MuJoCo along sines of random phases, from rest."""
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, (2, RATES.size))
    size = SWING / RATES.size**0.5 / (1 + RATES / RATES[2])

    def reference(t: float) -> np.ndarray:
        time, pace = (t * t / 2, t) if t < 1 else (t - 0.5, 1.0)  # from rest to full pace in 1 s
        wave, rise = RATES * time + phases, float(t < 1)
        theta_v, bend = np.cos(wave) @ (size * RATES), np.sin(wave) @ (size * RATES**2)
        motion = {"theta_q": home + (np.sin(wave) - np.sin(phases)) @ size}
        motion |= {"theta_v": pace * theta_v, "theta_a": rise * theta_v - pace**2 * bend}
        return law.reference(**motion)

    home = law.reference()[:2]
    options = {
        "reference": reference,
        "fast": True,
        "report": mb.validation.ReportOptions(explain=False),
    }
    return mb.validate(law, MODEL, duration, **options).runs[0].recording


def measured(system: mb.System, run: mb.validation.Recording, seed: int) -> Samples:
    """Return what noisy encoders and torque sensors say of a motion."""
    rng = np.random.default_rng(seed)
    q = run.q + ENCODER * rng.standard_normal(run.q.shape)
    u = run.u + TORQUE * rng.standard_normal(run.u.shape)
    return filtered_samples(system, run.t, q, u, cutoff=CUTOFF, every=EVERY)


def main(figure: str | None = None) -> dict[str, object]:
    """Return the identification, and the errors of the predicted torques in percent."""
    system = cad()
    theta = laws.joint_coordinates(system, MOTORS)
    law = laws.passive_joint_control(system, theta, kp=400.0)
    found = identify(system, measured(system, record(law, 6.0, seed=1), seed=2))
    other = measured(system, record(law, 4.0, seed=3), seed=4)
    torque = {"measured": other.f[:, [0, 2]]}
    for name, values in (("CAD", found.parameters.values), ("identified", found.theta)):
        torque[name] = predicted_controls(system, other, found.parameters, values)
    error = {
        name: 100 * np.linalg.norm(u - torque["measured"]) / np.linalg.norm(torque["measured"])
        for name, u in torque.items()
    }
    print(f"{len(found.base)} combinations of {len(found.theta)} parameters, ", end="")
    print(f"{len(found.undetermined)} not determined; torques of another motion are ", end="")
    print(f"{error['CAD']:.1f} % off by CAD, {error['identified']:.1f} % by the identified model")
    if figure is not None:
        t = np.arange(len(other)) * EVERY * 1e-3
        runs = {name: {"t": t, "u": u[:, 0]} for name, u in torque.items()}
        save_figure(figure, curves_of(runs, {"torque of the left motor, N m": "u"}))
    return {"identification": found, "error": error, "torque": torque}


if __name__ == "__main__":
    main(*sys.argv[1:])
