"""Exports with a MuJoCo plugin, models that run it, and the same loop written by hand."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import casadi as ca
import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.validation import demo
from mbcasadi.validation.spec import build_experiment, example_inputs, read_spec

EULER = mujoco.mjtIntegrator.mjINT_EULER
RK4 = mujoco.mjtIntegrator.mjINT_RK4
IMPLICIT = mujoco.mjtIntegrator.mjINT_IMPLICIT
IMPLICITFAST = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
MUJOCO = mujoco.__path__[0]
OPEN = "<worldbody>"


def model_text(name):
    return Path(models.path(name)).read_text(encoding="utf-8")


@cache
def exported(name):
    """Return the export of a demonstration's controller, its library loaded, and its example."""
    spec = read_spec(Path(demo.__file__).parent / f"{name}.toml")
    experiment = build_experiment(spec, Path(models.path(name)))
    example = example_inputs(experiment)[""]
    return export(experiment.all_laws[""], example), example


def export(controller, example=None, name=None):
    """Export with the plugin, compile and load that; MuJoCo keeps it for the whole process."""
    folder = Path(mkdtemp(prefix="plugin-")) / "out"
    project = mb.export_c(controller, folder, name=name, example=example, mujoco_plugin=True)
    mujoco.mj_loadPluginLibrary(str(project.build_mujoco_plugin(MUJOCO).path))
    return project


def with_plugin(project, text, snippet=None):
    """Return the model with the plugin's declaration, or another one."""
    file = f"{project.name}_mujoco.xml"
    snippet = (project.folder / file).read_text(encoding="utf-8") if snippet is None else snippet
    included = text.replace(OPEN, f'<include file="{file}"/>{OPEN}', 1)
    return mujoco.MjModel.from_xml_string(included, {file: snippet.encode()})


def declaration(project):
    return (project.folder / f"{project.name}_mujoco.xml").read_text(encoding="utf-8")


def steps_by_hand(project, model, inputs, count, data=None):
    """Yield MuJoCo's data after each time step of: measure, step of the C, ctrl, mj_step.

    `inputs` maps the tick's number to the inputs that MuJoCo does not know.
    """
    data = mujoco.MjData(model) if data is None else data
    memory, z = project.memory(), np.array(project.manifest["z0"])
    steps = round(project.manifest["period"] / model.opt.timestep)
    for k in range(count):
        if k % steps == 0:
            measured = {"q": data.qpos, "v": data.qvel, "act": data.act, "t": [data.time], "z": z}
            named = {s["name"] for s in project.manifest["inputs"]}
            call = {n: np.array(x) for n, x in (measured | inputs(k // steps)).items()}
            outputs = project.step(memory, {n: x for n, x in call.items() if n in named})
            z, data.ctrl[:] = outputs.get("z_next", z), outputs["u"]
        mujoco.mj_step(model, data)
        yield data


def state(data):
    """Return what must repeat bit for bit."""
    return np.concatenate([[data.time], data.qpos, data.qvel, data.act, data.ctrl])


FILTERED = """<mujoco model="filtered"><option timestep="0.002" gravity="0 0 0"/><worldbody>
  <body><joint name="slide" type="slide" axis="1 0 0"/><geom size="0.1" mass="2"/></body>
  </worldbody><actuator>
  <general name="push" joint="slide" dyntype="filter" dynprm="0.05" gainprm="3"/>
  </actuator></mujoco>"""
RESULTS = ("u", "z_next", "status")
BREAKS_AT = 0.1  # m: beyond it the law's arithmetic gives NaN


def hand_made(name, breaks_at=np.inf):
    """PD on the filtered slider, by act and time too; without a safe output of its own."""
    q, v, act, t, ref = (ca.SX.sym(n) for n in ("q", "v", "act", "t", "ref"))
    u = 20 * (ref - q) - 4 * v - 0.1 * act + ca.sin(t)
    if np.isfinite(breaks_at):
        u += 1e-12 * ca.sqrt(breaks_at - q)
    z = ca.SX.sym("z")
    names = ["q", "v", "act", "ref", "t", "z"]
    results = [u + z, 0.5 * z + q, ca.SX(0)]
    function = ca.Function(name, [q, v, act, ref, t, z], results, names, [*RESULTS])
    units = {"q": ("slide", "m"), "v": ("slide", "m/s"), "u": ("push", ""), "act": ("push", "")}

    def signal(n):
        label, unit = units.get(n, (n, ""))
        return mb.Signal(n, (label,), (unit,))

    return mb.Controller(
        name=name, function=function, inputs=tuple(signal(n) for n in names),
        outputs=tuple(signal(n) for n in RESULTS), u_min=np.array([-np.inf]),
        u_max=np.array([np.inf]), z0=np.array([0.01]), period=0.006,
    )  # fmt: skip
