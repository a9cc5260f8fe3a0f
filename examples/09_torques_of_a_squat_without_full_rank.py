"""A humanoid squats on eight foot corners, 24 rows of rank 12: torques and loads by QR [S20].

S20 inverts the triangle `R` of `Aᵀ = Q [R; 0]`, which requires independent rows. Two flat feet on
four corners each have twelve rows too many. With the rank revealed, eq. 20 gives the torques and
eq. 21 the loads, both of least norm, and eq. 14 tests whether the motors can cause the motion.

You will see the torques and loads of one squat, then the missing torque without the knee motors.
"""

import casadi as ca
import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.formulation.null_space import null_space_inverse

CORNERS = [f"{side}_foot_{i}" for side in ("left", "right") for i in (1, 2, 3, 4)]
LEG = {"hip_pitch": -1.0, "knee": 2.0, "ankle_pitch": -1.0}  # of the bend: the soles stay flat
THIGH, SHANK = 0.4165, 0.4182  # m
LEAST, MOST = 0.1, 0.9  # rad, bend of the leg
PERIOD = 1.0  # s
SAMPLES = 101


def inverse_dynamics(system: mb.System, alive: np.ndarray) -> ca.Function:
    """Return (q, v, a) → (u, lam, residual, rank, slip) with the motors that are alive."""
    q, v, a = ca.MX.sym("q", system.nq), ca.MX.sym("v", system.nv), ca.MX.sym("a", system.nv)
    corners = [system.frame(name) for name in CORNERS]
    A = ca.vertcat(*[corner.jacobian(q)[:3, :] for corner in corners])
    c = ca.vertcat(*[corner.bias(q, v)[:3] for corner in corners])
    h = system.bias_force(q, v) - system.passive_force(q, v)
    B = system.actuation(q) @ ca.diag(alive)
    u, lam, residual = null_space_inverse(system.mass_matrix(q), h, A, B, a)
    out = {"u": u, "lam": lam, "residual": ca.norm_2(residual), "rank": mb.linalg.rank(A)}
    out["slip"] = ca.norm_inf(A @ a + c)  # m/s² of a corner in the desired motion
    return ca.Function("inverse", [q, v, a], [*out.values()], ["q", "v", "a"], [*out])


def squat(system: mb.System) -> ca.Function:
    """Return (t) → (q, v, a): the pelvis goes down and up, level, over feet that stand still."""
    t = ca.SX.sym("t")
    bend = (MOST + LEAST - (MOST - LEAST) * ca.cos(2 * np.pi / PERIOD * t)) / 2
    q = ca.SX(system.tree.keyframes["stand"])
    knee = 7 + system.actuator_names.index("left_knee")  # joints follow the pelvis' seven
    standing = q[knee] / 2
    for i, motor in enumerate(system.actuator_names):
        share = LEG.get(motor.split("_", 1)[1])
        if share is not None:
            q[7 + i] = share * bend
    q[0] -= (THIGH - SHANK) * (ca.sin(bend) - ca.sin(standing))
    q[2] += (THIGH + SHANK) * (ca.cos(bend) - ca.cos(standing))
    rate = ca.jacobian(q, t)
    v = ca.vertcat(rate[:3], ca.SX.zeros(3), rate[7:])
    return ca.Function("squat", [t], [q, v, ca.jacobian(v, t)], ["t"], ["q", "v", "a"])


def main(figure: str | None = None) -> dict[str, np.ndarray]:
    """Return the motion, its torques and loads, and the residual without knees."""
    system = mb.read_mjcf(models.path("humanoid"))
    t = np.linspace(0, PERIOD, SAMPLES)
    motion = squat(system).map(SAMPLES)(t=t)
    found = inverse_dynamics(system, np.ones(system.nu)).map(SAMPLES)(**motion)
    without_knees = np.array([float("knee" not in name) for name in system.actuator_names])
    dead = inverse_dynamics(system, without_knees).map(SAMPLES)(**motion)["residual"]
    out = {key: np.array(value) for key, value in {**motion, **found, "dead": dead}.items()}
    load = out["lam"].reshape(8, 3, SAMPLES)[:, 2].sum(axis=0)
    out |= {"t": t, "load": load}
    print(f"24 rows, rank {out['rank'].min():.0f}; corners slip {out['slip'].max():.0e} m/s²")
    print(
        f"torque at most {np.abs(out['u']).max():.1f} N m, load {load.min():.0f}…{load.max():.0f} N"
    )
    print(f"left undone: {out['residual'].max():.0e} N m with all motors (eq. 14 holds),")
    print(f"{out['dead'].min():.1f} to {out['dead'].max():.1f} N m without the knees")
    if figure is not None:
        draw(figure, drawn(system, out))
    return out


def drawn(system: mb.System, out: dict[str, np.ndarray]) -> list[Panel]:
    """Return torques, loads and the consistency test over one squat."""
    t, names = out["t"], [f"left_{part}" for part in LEG]
    torques = {name: (t, out["u"][system.actuator_names.index(name)]) for name in names}
    loads = {"toe": (t, out["lam"][2]), "heel": (t, out["lam"][8])}
    undone = {"knees dead": (t, out["dead"].ravel()), "all motors": (t, out["residual"].ravel())}
    return [
        Panel("torque, N m (eq. 20)", torques),
        Panel("load on one corner, N (eq. 21)", loads),
        Panel("left undone, N m (eq. 14)", undone, log=True),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
