"""An arm on a surface converges to its path: the error in quasi-velocities decays [A10, §4-5].

The desired velocity s leads to the path. `‖ε‖² / 2`, the kinetic energy of `v - s`,
obeys `‖ε(t)‖ = ‖ε(0)‖ exp(-K_d t)`, because the Coriolis term Γ is skew here; the one that A10
prints is not. Our own motion shows it. In MuJoCo, as C at 1 kHz, the decay ends at the softness
of its constraints, and with 10 % more mass and a push at the effect of these errors.

You will see the error with its bound, that of the tip, and the report of the gain condition.
"""

import casadi as ca
import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import laws

MODEL = models.path("prr_arm")
K_P, K_D = 3.0, 5.0  # 1/s  [A10, section 5]
DURATION = 7.2  # s; the path leaves the arm's reach after 7.36 s
OFFSET = np.array([-0.1, 0.2])  # m, rad: where the arm starts beside its path, at rest
PUSH, FROM, TO = 10.0, 4.0, 4.5  # N on the tip; s


def theta_of(system: mb.System) -> laws.Coordinates:
    """Return θ (2,): the tip's position, m, and the last link's angle, rad."""
    q = ca.SX.sym("q", system.nq)
    theta = ca.Function("theta", [q], [ca.vertcat(q[3], q[1] + q[2] + np.pi / 2)])
    return laws.function_coordinates(system, theta, names=("tip", "lean"), units=("m", "rad"))


def path(law: laws.Law, t: float, **more: float) -> np.ndarray:
    """Return the reference of A10, section 5."""
    size, mean = np.array([0.3, np.pi / 6]), np.array([0.5, np.pi / 12])
    w = np.array([0.6 * np.pi, np.pi])
    wave, rate = size * np.sin(w * t), size * w * np.cos(w * t)
    return law.reference(theta_q=mean + wave, theta_v=rate, theta_a=-(w**2) * wave, **more)


def start(theta: np.ndarray) -> np.ndarray:
    """Return q with the tip on the surface and the elbow below the base."""
    q2 = -np.arccos(theta[0] - np.sin(theta[1]))
    q3 = theta[1] - np.pi / 2 - q2
    return np.array([-np.sin(q2) - np.sin(q2 + q3), q2, q3, theta[0]])


def push(t: float) -> np.ndarray:
    """Return the force on the joints, which is unknown to the law."""
    return np.array([0.0, 0.0, 0.0, PUSH if FROM <= t < TO else 0.0])


PLANTS = {
    "MuJoCo": {},
    "wrong mass, push": {"perturb": {"mass": 0.1}, "disturbance": push, "delay": 1},
}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return t, q, v, ‖ε‖ and the error of θ of each motion."""
    system = mb.read_mjcf(MODEL)
    theta = theta_of(system)
    law = laws.quasi_velocity_tracking(system, theta, kp=K_P, kd=K_D)
    q0 = start(path(law, 0.0)[:2] + OFFSET)
    t = np.linspace(0, DURATION, 361)

    def force(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array(system.actuation(q) @ law.function(q, v, path(law, t), [])[0]).ravel()

    own = mb.simulate(system, q0, np.zeros(4), DURATION, force=force, times=t, rtol=1e-8)
    epsilon = laws.composite_error(system, theta, kp=K_P)
    found: dict[str, dict[str, np.ndarray]] = {"own motion": {"t": t, "q": own.q, "v": own.v}}
    with mb.validation.compile_controller(law) as program:
        for name, options in PLANTS.items():
            run = mb.validate(
                program, MODEL, DURATION, reference=lambda t: path(law, t), q0=q0, **options
            ).runs[0]
            record = run.recording
            found[name] = {"t": record.t, "q": record.q, "v": record.v}
            found[name]["error"] = record.monitor["error"]
            print(f"{name}: RMS error {1e3 * run.metric('tracking.rms'):.0f} mm or mrad, ", end="")
            print(f"one tick {1e6 * run.metric('time.median'):.1f} µs")
    for motion in found.values():
        refs = np.array([path(law, at) for at in motion["t"]]).T
        values = epsilon.map(len(motion["t"]))(motion["q"].T, motion["v"].T, refs)
        motion["epsilon"] = np.linalg.norm(values.full(), axis=0)
    length = found["own motion"]["epsilon"]
    print(f"own motion: the error decays at {-np.log(length[100] / length[0]) / t[100]:.5f} 1/s")
    late = slice(100, None)  # on the path
    print(laws.gain_condition(system, theta, own.q[late], own.v[late], kp=K_P, kd=K_D).in_words)
    if figure is not None:
        draw(figure, drawn(found), columns=2)
    return found


def drawn(found: dict[str, dict[str, np.ndarray]]) -> list[Panel]:
    """Return the composite error with its bound, and the error of the tip in MuJoCo."""
    error = {name: (motion["t"], motion["epsilon"]) for name, motion in found.items()}
    t, length = error["own motion"]
    error["bound"] = (t, length[0] * np.exp(-K_D * t))
    tip = {name: (found[name]["t"], 1e3 * found[name]["error"][:, 0]) for name in PLANTS}
    limits = (1e-8, 10.0)
    return [
        Panel("composite error, √kg m/s", error, log=True, dashed=[*error][-1:], limits=limits),
        Panel("error of the tip, mm", tip),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
