"""A humanoid squats: torques and loads of 24 rows of rank 12 by QR [S20].

S20 requires independent rows; two flat feet on four corners have twelve too many. With the rank
revealed, eq. 20 gives torques and eq. 21 loads; eq. 14 tests whether motors can cause the motion.

You will see the torques and loads of one squat, then the missing torque without the knee motors.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.formulation.null_space import null_space_inverse
from mbcasadi.plots import save_figure

CORNERS = [f"{side}_foot_{i}" for side in ("left", "right") for i in (1, 2, 3, 4)]
LEG = {"hip_pitch": -1.0, "knee": 2.0, "ankle_pitch": -1.0}  # of the bend: the soles stay flat
THIGH, SHANK, LEAST, MOST = 0.4165, 0.4182, 0.1, 0.9  # m, m; rad, bend of the leg
PERIOD, SAMPLES = 1.0, 101  # s


def inverse_dynamics(system: mb.System, alive: np.ndarray) -> ca.Function:
    """Return (q, v, a) → (u, lam, residual, rank, slip) with the motors that are alive."""
    q, v, a = ca.MX.sym("q", system.nq), ca.MX.sym("v", system.nv), ca.MX.sym("a", system.nv)
    A = ca.vertcat(*(system.frame(name).jacobian(q)[:3, :] for name in CORNERS))
    c = ca.vertcat(*(system.frame(name).bias(q, v)[:3] for name in CORNERS))
    M, h = system.mass_matrix(q), system.bias_force(q, v) - system.passive_force(q, v)
    u, lam, residual = null_space_inverse(M, h, A, system.actuation(q) @ ca.diag(alive), a)
    out = [u, lam, ca.norm_2(residual), mb.linalg.rank(A), ca.norm_inf(A @ a + c)]  # slip, m/s²
    names = ["u", "lam", "residual", "rank", "slip"]
    return ca.Function("inverse", [q, v, a], out, ["q", "v", "a"], names)


def squat(system: mb.System) -> ca.Function:
    """Return (t) → (q, v, a): the pelvis goes down and up, level, over feet that stand still."""
    t = ca.SX.sym("t")
    bend = (MOST + LEAST - (MOST - LEAST) * ca.cos(2 * np.pi / PERIOD * t)) / 2
    q = ca.SX(system.tree.keyframes["stand"])
    standing = q[7 + system.actuator_names.index("left_knee")] / 2  # after the pelvis' seven
    for i, motor in enumerate(system.actuator_names):
        if motor.split("_", 1)[1] in LEG:
            q[7 + i] = LEG[motor.split("_", 1)[1]] * bend
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
    out = {key: np.array(x).squeeze() for key, x in (motion | found | {"dead": dead}).items()}
    load, u = out["lam"].reshape(8, 3, SAMPLES)[:, 2].sum(axis=0), out["u"]
    print(f"24 rows, rank {out['rank'].min():.0f}; corners slip {out['slip'].max():.0e} m/s²")
    print(f"torque at most {np.abs(u).max():.1f} N m, load {load.min():.0f}…{load.max():.0f} N")
    print(f"left undone: {out['residual'].max():.0e} N m with all motors (eq. 14 holds),")
    print(f"{out['dead'].min():.1f} to {out['dead'].max():.1f} N m without the knees")
    if figure is not None:
        torques = zip(system.actuator_names, u, strict=True)
        loads = {"toe": (t, out["lam"][2]), "heel": (t, out["lam"][8])}
        subplots = {
            "torque, N m (eq. 20)": {name: (t, one) for name, one in torques if name[5:] in LEG},
            "load on one corner, N (eq. 21)": loads,
            "left undone, N m (eq. 14)": {k: (t, out[k]) for k in ("dead", "residual")},
        }
        save_figure(figure, subplots, log=[*subplots][2:])
    return out | {"t": t, "load": load}


if __name__ == "__main__":
    main(*sys.argv[1:])
