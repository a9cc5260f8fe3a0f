"""Small objects for valid calls, each made once."""

import tempfile
from functools import cache
from pathlib import Path

import casadi as ca
import mujoco
import numpy as np
from support.mpc_mechanisms import sliding_mass
from support.sensor_models import LOOP, wild_state

import mbcasadi as mb
from mbcasadi import control, estimation, models, mpc
from mbcasadi.control import laws, regulators
from mbcasadi.identification.base_parameters import random_samples
from mbcasadi.mpc.ocp.stage import Stage, slots_of

FOUR_BAR = models.path("four_bar")
JOINTS = ("left_proximal", "right_proximal")
FEET = ("FL", "FR", "RL", "RR")
STEPS, PERIOD = 4, 0.1


@cache
def four_bar():
    return mb.read_mjcf(FOUR_BAR)


@cache
def five_bar():
    return mb.read_mjcf(models.path("five_bar"))


@cache
def samples():
    return random_samples(four_bar())


@cache
def quadruped():
    return mb.read_mjcf(models.path("quadruped"))


@cache
def mass():
    return sliding_mass(ctrl_range=[[-3.0, 3.0]])


@cache
def model():
    """A fresh copy is made by each call that changes it."""
    return mujoco.MjModel.from_xml_path(str(FOUR_BAR))


@cache
def sensed():
    """A four-bar with sensors."""
    return mb.read_mjcf(LOOP)


@cache
def weighed():
    """A four-bar with a mass as a parameter."""
    return mb.read_mjcf(mb.models.path("four_bar"), parameters=["body:coupler:mass"])


@cache
def sensed_model():
    return mujoco.MjModel.from_xml_string(LOOP)


@cache
def sensed_data():
    return wild_state(sensed_model(), np.random.default_rng(0))


@cache
def symbols():
    """q and v of the four-bar."""
    return ca.SX.sym("q", 3), ca.SX.sym("v", 3)


@cache
def one_symbol():
    """q and v of a system with one coordinate."""
    return ca.SX.sym("q"), ca.SX.sym("v")


@cache
def theta():
    return laws.joint_coordinates(five_bar(), JOINTS)


@cache
def law():
    return laws.computed_torque(five_bar(), control.PostureTask())


@cache
def servo():
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    return q, v, laws.servo_rows(five_bar(), q, v, phi=q[0] - 0.1)


@cache
def linear():
    return mb.linearize(four_bar(), mb.equilibrium(four_bar()))


@cache
def along():
    rows = (np.tile(x, (3, 1)) for x in (linear().q, linear().v, linear().u))
    return regulators.linearize_along(four_bar(), *rows)


@cache
def state_filter():
    crank = estimation.Measured("crank", 1e-3, kind="position")
    return estimation.manifold_filter(four_bar(), [crank], force_noise=0.1)


@cache
def log_file():
    path = Path(tempfile.mkdtemp(prefix="mbcasadi-fuzz-")) / "log.csv"
    path.write_text("t,crank\n0,0.1\n1,0.2\n")
    return path


@cache
def encoder():
    return regulators.encoders(four_bar(), ["crank"])


@cache
def estimator():
    return estimation.kalman(linear(), encoder(), np.repeat([0.0, 1.0], 3), 1e-6)


@cache
def inverse_dynamics():
    return control.InverseDynamicsQP(four_bar(), [control.PostureTask(("crank",))])


@cache
def descriptor():
    return regulators.descriptor_form(linear())


@cache
def plain_model():
    return mpc.LinearModel.of([[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]], 0.1)


@cache
def lti_mpc():
    return mpc.lti_mpc(plain_model(), mpc.LinearOptions(2, np.ones(2), 1.0, preview=True))


@cache
def terminal_set():
    row = np.ones((1, 2))
    return mpc.TerminalSet(row, np.ones((1, 1)), row, 1)


def zeros_of(function):
    return tuple(np.zeros(function.numel_in(i)) for i in range(function.n_in()))


@cache
def ocp():
    return mpc.optimal_control_problem(mass(), STEPS, PERIOD, [mpc.Cost(Q=np.ones(2), R=1.0)])


@cache
def stage():
    own, has_changes = mpc.stage_symbols(mass()), True
    return Stage(mass(), slots_of(mass(), True, (), own), own, has_changes)


def stage_of(part):
    system, has_changes = part.law.system, False
    own = mpc.stage_symbols(system)
    slots = slots_of(system, False, part.slots(system), own)
    return Stage(system, slots, own, has_changes, part.unknowns(system))


@cache
def ocp_guess():
    return mpc.initial_guess(ocp(), np.zeros((STEPS + 1, 2)), np.zeros((STEPS, 1)))


@cache
def iteration():
    return mpc.real_time_iteration(ocp())


@cache
def trajectory_problem():
    own = mpc.stage_symbols(mass())
    return mpc.trajectory_problem(
        mass(),
        STEPS,
        (0.4, 0.4),
        [mpc.Cost(residual=own.u)],
        start=mpc.Start(q0=[0.0], v0=[0.0]),
        symbols=own,
    )


@cache
def path():
    own = mpc.stage_symbols(mass())
    times, targets = np.linspace(0, 0.4, 5), np.linspace(0, 1, 5)[:, None]
    return mpc.pose_path(mass(), own.q, own.q, times, targets, q0=[0.0])


@cache
def trajectory_guess():
    return mpc.trajectory_guess(trajectory_problem(), np.zeros((5, 1)))


@cache
def trajectory():
    return mpc.solve_trajectory(trajectory_problem(), trajectory_guess())


@cache
def feet():
    return [mb.Contact(name, friction=0.6, sides=4) for name in FEET]


@cache
def foot_of_geometry():
    return mb.contacts_of(quadruped(), ["FL_foot"], "floor")[0]


@cache
def stand():
    return quadruped().tree.keyframes["stand"]


@cache
def hopper():
    """A free base on one leg."""
    leg = "".join(
        f'<joint name="{name}" type="{kind}" axis="{axis}" armature=".1"/>'
        for name, kind, axis in (
            ("roll", "hinge", "1 0 0"), ("pitch", "hinge", "0 1 0"), ("length", "slide", "0 0 1")
        )
    )  # fmt: skip
    motors = "".join(f'<motor joint="{name}"/>' for name in ("roll", "pitch", "length"))
    return mb.read_mjcf(
        f"""<mujoco><worldbody><body name="base" pos="0 0 .3"><freejoint/>
        <geom type="box" size=".2 .1 .05" mass="4"/><body>{leg}<geom size=".02" mass=".3"/>
        <site name="foot" pos="0 0 -.3"/></body></body></worldbody>
        <actuator>{motors}</actuator></mujoco>"""
    )


@cache
def whole_body():
    """The hopper, with a task of its base over the horizon."""
    hand = control.FrameTask("base", kind="body", name="hand")
    return mpc.whole_body_mpc(hopper(), 1, 0.02, [mb.Contact("foot")], tasks=[hand])


@cache
def rigid_body():
    return mpc.single_rigid_body(quadruped(), feet(), stand())


@cache
def rigid_body_mpc():
    return mpc.single_rigid_body_mpc(rigid_body(), 2, [50.0] * 6 + [1.0] * 6, 1e-6)


@cache
def motion():
    """A simulated fall of the four-bar, of one step."""
    return mb.simulate(four_bar(), four_bar().tree.q0, np.zeros(3), 1e-3)


@cache
def folder():
    return Path(tempfile.mkdtemp(prefix="mbcasadi-fuzz-"))


@cache
def walking_law():
    tasks = [control.FrameTask("trunk", kind="body", name="trunk")]
    tasks += [control.FrameTask(name, orientation="") for name in FEET]
    return control.InverseDynamicsQP(
        quadruped(), tasks, feet(), force_weight=1e-3, force_reference=True, period=0.002
    )


@cache
def springy_law():
    """A law of a motor that moves a load through a spring."""
    system = mb.read_mjcf(
        '<mujoco><worldbody><body><joint name="motor" axis="0 0 1"/><geom size=".1"/>'
        '<body pos=".2 0 0"><joint name="spring" axis="0 0 1" stiffness="100"/><geom size=".1"/>'
        '</body></body></worldbody><actuator><motor joint="motor"/></actuator></mujoco>'
    )
    return control.InverseDynamicsQP(system, [control.PostureTask(("motor",))])


@cache
def matrices():
    names = ("H", "A_qp", "T", "g", "lba", "uba", "t")
    return {name: np.ones((2, 2)) for name in names}


@cache
def sine():
    x = ca.SX.sym("x")
    return ca.Function("sine", [x], [ca.sin(x)], ["x"], ["y"])
