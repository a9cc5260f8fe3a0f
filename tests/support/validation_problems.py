"""Controllers of a few lines, for the tests of the closed loop."""

import json
import subprocess
from dataclasses import asdict
from pathlib import Path

import casadi as ca
import numpy as np

from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.description import Contact, Controller, Signal
from mbcasadi.plant import Plant
from mbcasadi.platforms import library_name
from mbcasadi.validation import Campaign, Recording
from mbcasadi.validation.closed_loop.columns import CONTACT_FIELDS

CRANK_LIMIT = 1.5  # N m, of the four-bar's motor
FEET = ("FL", "FR", "RL", "RR")
SLIDER_MASS, SLIDER_STEP = 2.0, 0.01  # kg, s
SLIDER_LIMIT = 10.0  # N
# MuJoCo's Euler step: v⁺ = v + h u / m, q⁺ = q + h v⁺, exact to rounding.
SLIDER = f"""
<mujoco model="slider">
  <option timestep="{SLIDER_STEP}" integrator="Euler" gravity="0 0 0"/>
  <worldbody>
    <body name="cart"><joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.1" mass="{SLIDER_MASS}"/></body>
  </worldbody>
  <actuator><motor name="push" joint="slide" ctrlrange="-{SLIDER_LIMIT} {SLIDER_LIMIT}"/></actuator>
</mujoco>
"""
SLIDER_GAIN = np.array([[20.0, 8.0]])  # N/m, N s/m


def signal(name: str, size: int, unit: str = "") -> Signal:
    return Signal(name, tuple(f"{name}{i}" for i in range(size)), (unit,) * size)


def crank_controller(
    *, period: float = 1e-3, kp: float = 60.0, kd: float = 2.0, limit: float = CRANK_LIMIT, **more
) -> Controller:
    """PD on the four-bar's crank; ref = (angle, rate)."""
    q, v, ref = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("ref", 2)
    wanted = kp * (ref[0] - q[0]) + kd * (ref[1] - v[0])
    u = ca.fmin(ca.fmax(wanted, -limit), limit)
    monitor = ca.Function(
        "monitor", [q, ref], [ref[0], ref[0] - q[0]], ["q", "ref"], ["target", "error"]
    )
    fields = {
        "name": "crank",
        "function": ca.Function("crank", [q, v, ref], [u], ["q", "v", "ref"], ["u"]),
        "inputs": (signal("q", 3, "rad"), signal("v", 3, "rad/s"), signal("ref", 2)),
        "outputs": (signal("u", 1, "N m"),),
        "u_min": np.array([-CRANK_LIMIT]),
        "u_max": np.array([CRANK_LIMIT]),
        "z0": np.zeros(0),
        "period": period,
        "monitor": monitor,
        "monitors": (Signal("target", ("crank",), ("rad",)), Signal("error", ("crank",), ("rad",))),
    }
    return Controller(**(fields | more))


def swing(t: float) -> list[float]:
    """Crank angle and rate: ±0.5 rad at 0.5 Hz, from rest."""
    return [0.5 * (1 - np.cos(np.pi * t)), 0.5 * np.pi * np.sin(np.pi * t)]


def standing_controller(q0: np.ndarray, period: float = 2e-3) -> Controller:
    """PD on the quadruped's 12 joints around a pose; its state is the sum of the mask."""
    q, v, z = ca.SX.sym("q", 19), ca.SX.sym("v", 18), ca.SX.sym("z")
    mask = ca.SX.sym("mask", 4)
    u = 80 * (ca.DM(q0[7:]) - q[7:]) - 2 * v[6:]
    u = ca.fmin(ca.fmax(u, -20), 20)
    z_next = z + ca.sum1(mask)
    status = ca.if_else(mask[0] > 0.5, 0, 2)
    names_in, names_out = ["q", "v", "mask", "z"], ["u", "z_next", "status", "residual"]
    residual = ca.SX(1e-9)
    target = ca.DM(q0[7:])
    monitor = ca.Function("monitor", [q], [target, target - q[7:]], ["q"], ["target", "error"])
    joints = tuple(f"joint{i}" for i in range(12))
    return Controller(
        name="standing",
        function=ca.Function(
            "standing", [q, v, mask, z], [u, z_next, status, residual], names_in, names_out
        ),
        inputs=tuple(signal(n, s) for n, s in zip(names_in, (19, 18, 4, 1), strict=True)),
        outputs=tuple(signal(n, s) for n, s in zip(names_out, (12, 1, 1, 1), strict=True)),
        u_min=np.full(12, -20.0),
        u_max=np.full(12, 20.0),
        z0=np.zeros(1),
        period=period,
        contacts=tuple(Contact(foot, friction=0.7) for foot in FEET),
        monitor=monitor,
        monitors=tuple(Signal(n, joints, ("rad",) * 12) for n in ("target", "error")),
    )


def slider_matrices(mass: float = SLIDER_MASS) -> tuple[np.ndarray, np.ndarray]:
    """Return A, B of (q, v) over one step."""
    h = SLIDER_STEP
    return np.array([[1, h], [0, 1]]), np.array([[h * h / mass], [h / mass]])


def planning_slider(
    *, delay: int = 0, horizon: int = 8, mass: float = SLIDER_MASS, **more
) -> Controller:
    """Feedback to the origin that predicts its motion, with `mass` in its model.

    It predicts the state over `delay` ticks with the pending controls, its z.
    """
    A, B = (ca.DM(part) for part in slider_matrices(mass))
    K = ca.DM(SLIDER_GAIN)
    q, v, z, u, z_next = (
        ca.SX.sym(n, k) for n, k in (("q", 1), ("v", 1), ("z", delay), ("u", 1), ("z_next", delay))
    )
    x = ca.vertcat(q, v)
    for k in range(delay):
        x = A @ x + B @ z[k]
    command = -K @ x
    sent = ca.vertcat(z, command)[1:] if delay else z
    states, controls = [x], []
    for k in range(horizon):
        first = z_next[-1] if delay else u  # the law's output, in both
        controls.append(first if k == 0 else -K @ states[-1])
        states.append(A @ states[-1] + B @ controls[-1])
    plan = ca.Function(
        "prediction",
        [q, v, z, u, z_next],
        [ca.horzcat(*states), ca.horzcat(*controls)],
        ["q", "v", "z", "u", "z_next"],
        ["x", "u"],
        {"allow_duplicate_io_names": True},  # u is both what acts and what is planned
    )
    names_in, names_out = ["q", "v", "z"], ["u", "z_next"]
    fields = {
        "name": "planning_slider",
        "function": ca.Function("slider", [q, v, z], [command, sent], names_in, names_out),
        "inputs": (signal("q", 1, "m"), signal("v", 1, "m/s"), signal("z", delay)),
        "outputs": (Signal("u", ("push",), ("N",)), signal("z_next", delay)),
        "u_min": np.array([-SLIDER_LIMIT]),
        "u_max": np.array([SLIDER_LIMIT]),
        "z0": np.zeros(delay),
        "period": SLIDER_STEP,
        "prediction": plan,
        "prediction_rows": ("q.slide", "v.slide"),
        "delay": delay,
    }
    return Controller(**(fields | more))


def idle_controller(path: Path, periods: int = 2) -> Controller:
    """Return a controller of zero, or of the nearest control within the limits, for any model."""
    plant = Plant(path)
    low, high = plant.ctrl_range.T
    q, v = ca.SX.sym("q", plant.nq), ca.SX.sym("v", plant.nv)
    u = ca.DM(np.clip(np.zeros(plant.nu), low, high)) + 0 * q[0]
    return Controller(
        name="idle",
        function=ca.Function("idle", [q, v], [u], ["q", "v"], ["u"]),
        inputs=(signal("q", plant.nq), signal("v", plant.nv)),
        outputs=(signal("u", plant.nu),),
        u_min=low,
        u_max=high,
        z0=np.zeros(0),
        period=periods * plant.timestep,
    )


TICKS = 1000  # of a made-up recording


def recording(**fields: object) -> Recording:
    """Return a recording of a robot that does nothing, with some fields replaced."""
    nothing, contacts = np.zeros(TICKS), len(fields.get("contact_names", ()))
    values: dict = {
        "t": np.arange(TICKS) * 1e-3,
        **{n: np.zeros((TICKS, 3)) for n in ("q", "v", "a", "actuator_force")},
        **{n: np.zeros((TICKS, 3)) for n in ("equality_force", "other_force", "disturbance")},
        **{
            n: np.zeros((TICKS, 0))
            for n in ("act", "ref", "tuning", "p", "mask", "z", "equality_active")
        },
        **{n: np.zeros((TICKS, 1)) for n in ("u", "u_applied")},
        **dict.fromkeys(("check", "closure", "residual", "energy"), nothing),
        "status": nothing.astype(int),
        "flags": nothing.astype(int),
        "contact_names": (),
        **{n: np.zeros((TICKS, contacts, 3)) for n in ("contact_force", "contact_position")},
        **{name: np.zeros((TICKS, contacts)) for name in CONTACT_FIELDS},
    }
    return Recording(**(values | fields))


def all_digits(done: Campaign) -> list[str]:
    """Return the outcomes of a campaign as texts that are equal only bit by bit."""
    return [json.dumps(asdict(outcome)) for outcome in done.outcomes]


def compiled_library(folder: Path, source: str) -> Path:
    """Return a shared library of C functions."""
    (folder / "pd.c").write_text(source)
    path = folder / library_name("pd")
    command = [*find_compiler(None), "-shared", "-fPIC", str(folder / "pd.c"), "-o", str(path)]
    subprocess.run(command, check=True)
    return path
