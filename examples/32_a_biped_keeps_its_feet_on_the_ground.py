"""A planar biped recovers from a push with the friction cones of its feet as rows of its MPC.

The robot of example 21 stands on contacts. Its regulator assumes pins: after a push of 220 N,
a third of its weight, for 0.2 s it requires forces that would pull a foot down, the foot lifts or
slips, and it falls; at 1 kHz it withstands one of the two pushes. So does an MPC with torque limits
alone, a foot in the air: these limits are not active. With the friction cone and a least load of
both feet among its rows, each a bound of the loop's constraint force, the MPC bends the trunk
instead and recovers. All have the same weights, and but for one the same period of 10 ms. The plant
is 10 % heavier and acts one tick late, which only the MPCs take into account.

You will see the hip and the trunk under these laws, pushed from both sides.
"""

from importlib import import_module

import numpy as np
from closed_loops import motors
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import lqr
from mbcasadi.mpc import LinearMPC, friction_output, linear_mpc
from mbcasadi.validation import Run, compile_controller

MODEL = models.path("planar_biped")
PERIOD, HORIZON, DURATION = 0.01, 30, 3.0  # s, samples, s
PUSHES, PUSHED = (220.0, -220.0), (0.5, 0.7)  # N on the trunk; s
WEIGHTS, EFFORT = [10.0, 0.1], 1e-4  # 1/rad² or 1/m², per s; 1/(N m)²
FRICTION, LEAST = 0.5, 40.0  # of the feet, 0.9 in the plant; N on each foot
FALLEN = 0.3  # m that the hip has come down


def main(figure: str | None = None) -> dict[tuple[str, float], Run]:
    """Return the runs, by law and push."""
    system = mb.read_mjcf(MODEL)
    held = mb.equilibrium(system)
    linear = mb.linearize(system, held)
    feet = [
        friction_output(linear, foot, foot, FRICTION, min_force=LEAST)
        for foot in ("left_foot", "right_foot")
    ]
    weights = np.repeat(WEIGHTS, system.nv), EFFORT
    laws = {
        "LQR": lqr(linear, *weights, period=PERIOD),
        "LQR at 1 kHz": lqr(linear, *weights, period=1e-3),
        "MPC, torques": linear_mpc(linear, HORIZON, *weights, period=PERIOD, delay=1),
        "MPC, torques and feet": linear_mpc(
            linear, HORIZON, *weights, period=PERIOD, delay=1, outputs=feet
        ),
    }
    on_contacts = import_module("21_a_biped_stands_against_a_push").on_contacts()
    runs = {}
    for name, law in laws.items():
        follow = {}
        if isinstance(law, LinearMPC):
            follow = {"reference": law.reference(setpoint_q=held.q, setpoint_u=held.u)}
        with compile_controller(law) as code:
            for force in PUSHES:
                wrong = {"perturb": {"mass": 0.1}, "delay": 1, "disturbance": push(force)}
                run = mb.validate(code, on_contacts, DURATION, **follow, **wrong).runs[0]
                runs[name, force] = run
                x, z, lean = np.abs(run.recording.q[:, :3] - held.q[:3]).T
                end = f"ends {1e3 * x[-1]:.0f} mm off; hip {1e3 * x.max():.0f} mm, "
                end += f"lean {1e3 * lean.max():.0f} mrad at most"
                if z.max() > FALLEN:  # how it lies then is a matter of rounding errors
                    end = "falls"
                print(f"{name}, {force:+.0f} N: {end};\n  {motors(run)}")
    if figure is not None:
        draw(figure, drawn(runs), marks=PUSHED, one_legend=True)
    return runs


def push(force: float) -> object:
    """Return time → the force on the coordinates."""
    return lambda t: force * (PUSHED[0] <= t < PUSHED[1]) * np.eye(7)[0]


def drawn(runs: dict[tuple[str, float], Run]) -> list[Panel]:
    """Return the hip after both pushes, and the trunk after the first."""
    chosen = [("hip forward, mm", 0, force) for force in PUSHES] + [("lean, mrad", 2, PUSHES[0])]
    return [
        Panel(
            f"{title}, after {force:+.0f} N",
            {
                law: (run.recording.t, 1e3 * run.recording.q[:, i])
                for (law, pushed), run in runs.items()
                if pushed == force
            },
            limits=(-200, 200),
        )
        for title, i, force in chosen
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
