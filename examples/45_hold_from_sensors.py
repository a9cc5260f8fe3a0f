"""A quadruped sways in MuJoCo by C that knows only what its sensors read.

An estimator and inverse dynamics are one law from gyroscope, accelerometer and encoders to torques.
Its C runs inside `mj_step` on `sensordata`. The trunk circles, is pushed; the IMU fails for 30 ms.
You will see the trunk beside its reference, and for how long the law was not sure of its state.
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.codegen import CProject
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.description.status import Flag
from mbcasadi.estimation import Encoders, Imu, base_estimator, encoder_noise, with_estimator
from mbcasadi.plots import save_figure

MODEL, FEET, PERIOD, DURATION = mb.models.path("quadruped"), ("FL", "FR", "RL", "RR"), 2e-3, 3.0
WHERE, SPEED, CHANGE = "trunk.position", "trunk.velocity", "trunk.acceleration"
RADIUS, RATE = 0.02, np.pi  # m, rad/s
PUSHED, FORCE, LOST = (1.5, 1.6), 60.0, (2.5, 2.53)  # s; N on the trunk, sideways; s, of the IMU


def circle(place: np.ndarray, t: float) -> dict[str, np.ndarray]:
    """Return where the trunk shall be at t, and its velocity and acceleration."""
    size, out, turn = RADIUS * min(t, 1.0), RADIUS * (t < 1.0), np.exp(1j * RATE * t)
    z, v, a = 1j * (1 - turn), RATE * turn, 1j * RATE**2 * turn  # in the plane, for a radius of 1
    moves = {WHERE: size * z, SPEED: size * v + out * z, CHANGE: size * a + 2 * out * v}
    return {k: place * (k == WHERE) + [x.real, x.imag, 0.0] for k, x in moves.items()}


def simulation(project: CProject) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return MuJoCo's model with the plugin, its weight on its feet."""
    built = project.build_mujoco_plugin(mujoco.__path__[0], flags=("-O0",))  # soon ready
    mujoco.mj_loadPluginLibrary(str(built.path))
    file, text = f"{project.name}_mujoco.xml", Path(MODEL).read_text(encoding="utf-8")
    text = text.replace("<worldbody>", f'<include file="{file}"/><worldbody>', 1)
    model = mujoco.MjModel.from_xml_string(text, {file: (project.folder / file).read_bytes()})
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, 1000)
    rest = [*model.key_qpos[0, :2], *data.qpos[2:]]
    mujoco.mj_resetData(model, data)
    data.qpos[:] = rest
    mujoco.mj_forward(model, data)  # the first reading of the IMU
    return model, data


def main(figure: str | None = None) -> dict[str, np.ndarray]:
    """Return time, the trunk's place, its reference, and when the law was not sure."""
    system, feet = mb.read_mjcf(MODEL), [mb.Contact(name, friction=0.6) for name in FEET]
    law = InverseDynamicsQP(system, [FrameTask("trunk", kp=200.0)], feet, period=PERIOD)
    q0, encoders = system.tree.keyframes["stand"], Encoders(noise=encoder_noise(14))
    state = {"imu": Imu("trunk"), "encoders": encoders, "q0": q0, "period": PERIOD}
    whole = with_estimator(law, base_estimator(system, feet, **state))
    options = {"example": {"ref": law.reference_at(q0)}, "mujoco_plugin": True}
    project = mb.export_c(whole, Path(mkdtemp()) / "c", **options)
    (model, data), places, rows = simulation(project), project.manifest["mujoco"]["userdata"], []
    for t in model.opt.timestep * np.arange(round(DURATION / model.opt.timestep)):
        target, valid = circle(q0[:3], t), np.append(not LOST[0] <= t < LOST[1], np.ones(12))
        for name, x in {"ref": law.reference_at(q0, target), "valid": valid}.items():
            data.userdata[places[name]["switch"] :][: 1 + x.size] = [1.0, *x]
        data.body("trunk").xfrc_applied[1] = FORCE * (PUSHED[0] <= t < PUSHED[1])
        mujoco.mj_step(model, data)
        rows.append([t, *data.qpos[:3], *target[WHERE], int(data.plugin_state[1]) & Flag.UNSURE])
    (t,), place, ref, (unsure,) = np.split(np.array(rows).T, [1, 4, 7])
    off, time = 1e3 * np.linalg.norm(place - ref, axis=0), 1e3 * DURATION * np.mean(unsure > 0)
    print(f"off by {off[t < PUSHED[0]].max():.1f} mm, pushed {off.max():.0f}; unsure {time:.0f} ms")
    if figure is not None:
        curves = [{"is": (t, place[k]), "reference": (t, ref[k])} for k in range(3)]
        save_figure(figure, dict(zip(("x, m", "y, m", "z, m"), curves, strict=True)))
    return {"t": t, "place": place, "reference": ref, "unsure": unsure > 0}


if __name__ == "__main__":
    main(*sys.argv[1:])
