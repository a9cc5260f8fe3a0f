"""An arm between antagonist muscles is linearised and held, loaded or not.

Muscles only pull, and their activation follows the control in 10 to 40 ms. The equilibrium of least
control leaves the extensors slack; with some tone in all of them the arm is stiffer, and a linear
law can act both ways. The linear model is that of the manifold and of the activations,
`x = (ξ, η, α)`; the law (q, v, act) → u runs as C against MuJoCo.

You will see controls and poles at the pose, and the largest error of a joint with LQR and linear
MPC: free, and with a load of 10 N that no model knows; LQR counts the sum of its error against it.
"""

import numpy as np

import mbcasadi as mb

PERIOD, DURATION = 0.002, 3.0  # s
TONE = 0.15  # activation that antagonists share
OFFSET = np.array([0.15, -0.1])  # rad, at the start
LOAD = np.array([0.0, 0.0, -10.0])  # N, at the forearm
STATE_WEIGHT = np.r_[300.0, 300.0, 1.0, 1.0, 0.01 * np.ones(4)]  # of δq, δv, δact
SUMS = {"shoulder": 2e3, "elbow": 2e3}
HORIZON = 40  # ticks


def toned(system: mb.System, pose: np.ndarray) -> mb.control.regulators.Linearization:
    """Return the linear model at a pose, all muscles active where that moves nothing."""
    rest = mb.equilibrium(system, pose)
    inner = rest.control_directions
    u = rest.u + inner @ (inner.T @ np.full(system.nu, TONE))
    return mb.linearize(system, rest.q, u=u, act=u)


def joint_error(controller: object, model: object, linear: object, loaded: bool) -> float:
    """Return the largest error of a joint over the last 0.5 s, rad, of the controller in C."""
    load = mb.validation.Push("forearm", LOAD, start=0.0, stop=DURATION) if loaded else None
    start = linear.q + OFFSET
    report = mb.validate(controller, model, DURATION, q0=start, disturbance=load)
    recording = report.runs[0].recording
    late = recording.t > DURATION - 0.5
    return float(np.abs(recording.q[late] - linear.q).max())


def main() -> dict[str, object]:
    """Return the linear model, and the error of each law, free and loaded."""
    model = mb.models.path("muscle_arm")
    system = mb.read_mjcf(model)
    linear = toned(system, system.tree.keyframes["reach"])
    for name, u in zip(system.actuator_names, linear.u, strict=True):
        print(f"{name:8} {u:.3f}")
    poles = np.sort_complex(np.linalg.eigvals(linear.dfdx))
    print("poles, 1/s:", np.array2string(poles, precision=1))
    weights = (STATE_WEIGHT, np.ones(system.nu))
    laws = {
        "lqr": mb.control.regulators.lqr(
            linear, *weights, integral=SUMS, options=mb.control.LawOptions(period=PERIOD)
        ),
        "mpc": mb.mpc.linear_mpc(linear, mb.mpc.LinearOptions(HORIZON, *weights, period=PERIOD)),
    }
    errors = {}
    for name, law in laws.items():
        for loaded in (False, True):
            errors[name, loaded] = joint_error(law, model, linear, loaded)
            print(f"{name}, {'10 N' if loaded else 'free'}: {1e3 * errors[name, loaded]:.3f} mrad")
    return {"linear": linear, "errors": errors}


if __name__ == "__main__":
    main()
