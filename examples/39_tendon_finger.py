"""A finger closes and opens by three tendons that can only pull.

The flexors lie on the cylinders of the joints and lift off as the finger bends, so their moment
arms change, and the law knows them: inverse dynamics as a QP, in C, with tensions from 0 to 20 N.
The plant's masses are 10 % heavier, and its control comes a tick late.

You will see the joints follow their references, and the tensions, which never push.
"""

import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.plots import save_figure

MODEL = models.path("tendon_finger")
OPEN, CLOSED = np.array([0.2, 0.2, 0.15]), np.array([1.1, 1.3, 0.8])  # rad
JOINTS, TENDONS = ("proximal", "middle", "distal"), ("profundus", "superficialis", "lumbrical")
RATE = np.pi  # rad/s: closed after one second, open again after two
DURATION = 2.0  # s
STIFFNESS = 3600.0  # 1/s²


def motion(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v and a of the reference."""
    half = (CLOSED - OPEN) / 2
    c, s = np.cos(RATE * t), np.sin(RATE * t)
    return OPEN + half * (1 - c), half * RATE * s, half * RATE**2 * c


def main(figure: str | None = None) -> dict[str, np.ndarray | float]:
    """Return t, joints and their references (n, 3), rad, tensions (n, 3), N, and the errors."""
    system = mb.read_mjcf(MODEL)
    law = InverseDynamicsQP(system, [PostureTask(kp=STIFFNESS)])

    def reference(t: float) -> np.ndarray:
        q, v, a = motion(t)
        return law.reference(posture_q=q, posture_v=v, posture_a=a)

    options = {"reference": reference, "q0": OPEN, "perturb": {"mass": 0.1}, "delay": 1}
    run = mb.validate(law, MODEL, DURATION, **options).runs[0]
    t, q, u = run.recording.t, run.recording.q, run.recording.u
    wanted = np.array([motion(each)[0] for each in t])
    found = {"t": t, "q": q, "wanted": wanted, "u": u}
    found |= {"rms": np.sqrt(np.mean((q - wanted) ** 2)), "largest": np.abs(q - wanted).max()}
    found |= {"saturated": run.metric("torque.saturated")}
    found["tick"] = run.metric("time.median")
    rms, largest = (1e3 * found[name] for name in ("rms", "largest"))
    print(f"error {rms:.1f} mrad RMS, {largest:.1f} mrad at most; ", end="")
    print(f"tensions {u.min():.2f} to {u.max():.2f} N; {1e6 * found['tick']:.1f} µs a tick")
    if figure is not None:
        joints = {name: (t, q[:, k]) for k, name in enumerate(JOINTS)}
        joints |= {f"{name}, reference": (t, wanted[:, k]) for k, name in enumerate(JOINTS)}
        tensions = {name: (t, u[:, k]) for k, name in enumerate(TENDONS)}
        save_figure(figure, {"angle, rad": joints, "tension, N": tensions})
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
