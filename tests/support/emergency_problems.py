"""Controllers of one arm with a position servo and a motor, with faults, and their C with hooks."""

import ctypes
import dataclasses
import subprocess

import casadi as ca
import mujoco
import numpy as np

import mbcasadi as mb
import mbcasadi.codegen as codegen
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.control import InverseDynamicsQP, PostureTask, with_fallback
from mbcasadi.control.laws import computed_torque
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.mpc import optimal_control_problem, real_time_iteration
from mbcasadi.mpc.ocp.cost import Cost

# The initial pose is not zero: a zero command would tear the servo away by 0.8.
ARM = """<mujoco><compiler angle="radian"/><option timestep="0.001"/><worldbody>
  <body><joint name="a" axis="0 1 0" ref="0.4"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
    <body pos=".4 0 0"><joint name="b" axis="0 1 0" ref="-0.7"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body></body></worldbody>
  <actuator><position name="a" joint="a" gear="2" kp="300" kv="20" ctrlrange="-3 3"/>
    <motor name="b" joint="b" ctrlrange="-9 9"/></actuator></mujoco>"""
BREAKS = 50.0  # rad, of the first joint: beyond it the faulty arithmetic gives NaN


def spoilt(f: ca.Function) -> ca.Function:
    """Return the Function with NaN in u, z_next and residual where the first joint says so."""
    symbols = f.sx_in() if f.is_a("SXFunction") else f.mx_in()
    outputs = dict(zip(f.name_out(), f.call(symbols), strict=True))
    wrong = symbols[f.index_in("q")][0] > BREAKS
    for name in {"u", "z_next", "residual"} & set(outputs):
        outputs[name] = ca.if_else(wrong, np.nan, outputs[name])
    values = list(outputs.values())
    return ca.Function(f.name(), symbols, values, f.name_in(), f.name_out())


def with_fault(controller: Controller) -> Controller:
    """Return a controller whose arithmetic breaks down where `spoilt` says so."""
    stages = controller.stages
    if stages is None:
        return dataclasses.replace(controller, function=spoilt(controller.function))
    faulty = LeastDistanceStages(stages.build, spoilt(stages.finish), stages.prepare)
    return dataclasses.replace(controller, stages=faulty)


def foreign() -> Controller:
    """Return a controller made by hand: (q) → (u, status), two servos held at 1 + q.

    NaN is bad input, for which it commands (0.7, -9), beyond its limit of 2.
    """
    q = ca.SX.sym("q", 2)
    known = ca.sum1(ca.fabs(q)) < np.inf
    u = ca.if_else(known, 1 + q, ca.DM([0.7, -9.0]))
    law = ca.Function("law", [q], [u, ca.if_else(known, 0, 3)], ["q"], ["u", "status"])
    signals = [Signal("q", (), ()), Signal("u", (), ()), Signal("status", (), ())]
    limits = np.array([2.0, 2.0])
    return Controller(
        "foreign", law, (signals[0],), tuple(signals[1:]), -limits, limits, np.zeros(0), 5e-3
    )


def made(kind: str) -> Controller:
    """Return one of the controllers of `KINDS`."""
    system = mb.read_mjcf(ARM)
    law = computed_torque(system, PostureTask(kp=50.0))
    makers = {
        "qp": lambda: InverseDynamicsQP(system, [PostureTask(kp=50.0)]),
        "law": lambda: law,
        "hold": lambda: with_fallback(law, "hold"),
        "zero": lambda: InverseDynamicsQP(system, [PostureTask(kp=50.0)], fallback="zero"),
        "rti": lambda: real_time_iteration(
            optimal_control_problem(system, 3, 0.01, [Cost(Q=np.ones(4), R=[1.0, 1.0])])
        ),
    }
    return foreign() if kind == "foreign" else makers[kind]().controller


class Faulty:
    """The C of a controller with faults, in a library that can also mark its memory as in use."""

    def __init__(self, kind, folder):
        self.kind, self.controller = kind, with_fault(made(kind))
        self.model = mujoco.MjModel.from_xml_string(ARM)
        project = codegen.export_c(self.controller, folder / "c", name="faulty")
        self.manifest, library = project.manifest, folder / "faulty.so"
        hooks = folder / "hooks.c"
        hooks.write_text(
            '#include "faulty.c"\nvoid set_busy(void *m, int n) { ((struct memory *)m)->busy = n; }'
        )
        command = [*find_compiler(), "-O0", "-shared", "-fPIC", str(hooks), f"-I{project.folder}"]
        subprocess.run([*command, "-lm", "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))

    def memory(self):
        """Return a block that is ready."""
        block = np.zeros(self.manifest["memory_bytes"] // 8)
        assert self.library.faulty_init(pointer(block), ctypes.c_size_t(block.nbytes)) == 0
        return block

    def call(self, phase, memory, inputs):
        """Return what a function of the C returns, and its outputs; NaN where it writes none."""
        signals = self.manifest["inputs"]
        if phase == "prepare":
            signals = [s for s in signals if s["name"] in self.manifest["prepared_from"]]
        sizes = {s["name"]: s["size"] for s in self.manifest["outputs"] if phase != "prepare"}
        outputs = {name: np.full(size, np.nan) for name, size in sizes.items()}
        given = [inputs.get(s["name"]) for s in signals]
        given = [None if x is None else np.array(x, dtype=float) for x in given]
        arrays = [pointer(x) for x in (*given, *outputs.values())]
        place = memory if memory is None or isinstance(memory, int) else pointer(memory)
        if isinstance(place, int):
            place = ctypes.c_void_p(place)
        return getattr(self.library, f"faulty_{phase}")(place, *arrays), outputs

    def inputs(self, q):
        """Return inputs of a tick at rest, without z."""
        sizes = {s["name"]: s["size"] for s in self.manifest["inputs"]}
        values = {"q": np.array(q), "v": np.zeros(2)}
        if sizes.get("ref") == 6:
            values["ref"] = np.array([*q, 0, 0, 0, 0], dtype=float)
        elif "ref" in sizes:
            values["ref"] = np.zeros(sizes["ref"])
        return values


def pointer(array):
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def acceleration(model, q, u):
    """Return what MuJoCo says of a pose at rest under a control, rad/s²."""
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = q, u
    mujoco.mj_forward(model, data)
    return data.qacc.copy()
