"""A Robotiq 2F85 on a mount that moves up and sideways: it grasps a box, lifts it and shakes it.

The law knows gripper, mount and box as one mechanism, with contacts between the corners of the pads
and the box. It plans with the friction divided by the margin, so that at each tick the pads press
hard enough for `MARGIN` times the load. MuJoCo's contacts creep; `impratio` says how little.
"""

from collections.abc import Iterator

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.validation import Recording, ScenarioOptions
from robots.arms.row import Figure
from robots.models import path as robot_path

GRIPPER = "men__robotiq_2f85__2f85"
PERIOD, STEP, DELAY, MASS = 2e-3, 1e-3, 1, 0.1
IMPRATIO = 100.0
BOX_MASS, BOX_SIZE = 1.0, (0.02, 0.025, 0.03)  # kg, m: half the edges
FRICTION, MARGIN = 0.6, 1.5  # of the pads' lower halves
CLOSED, LIFTED, SHAKEN, DURATION = 1.0, 1.5, 3.5, 5.5  # s: grasped, lifted, shaken up, sideways
FADE = 0.5  # s, of the shaking
LIFT, RATE, SHAKE = 0.1, 2 * np.pi * 4.0, 2 * 9.81  # m, rad/s, m/s²
PAD_X, PAD_Y, PAD_Z = 0.010, -0.0066, (0.002, 0.0355)  # m, corners in the axes of a pad
AXIS = 0.145 + 0.0108  # m from the mount to the point between the pads
HEIGHT = BOX_SIZE[2] + AXIS
GRIP, GRIP_WEIGHT = 4.0, 1e-4  # N of the fingers' tendon, of at most 5; of torque_weight
CLOSING = 0.75  # rad of the drivers, beyond what the box admits


def model() -> mujoco.MjModel:
    """Return gripper, mount, box and floor."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.impratio = STEP, IMPRATIO
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.compiler.degree = False
    world = spec.worldbody
    world.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.1])
    mount = world.add_body(name="mount", pos=[0, 0, HEIGHT], quat=[0, 1, 0, 0])
    mount.add_geom(size=[0.02, 0, 0], mass=1.0, contype=0, conaffinity=0)
    slide = mujoco.mjtJoint.mjJNT_SLIDE
    for name, axis in (("sideways", [0, -1, 0]), ("lift", [0, 0, -1])):
        mount.add_joint(name=name, type=slide, axis=axis, range=[-0.5, 0.5], limited=True)
        motor = spec.add_actuator(name=name, target=name, ctrlrange=[-300, 300], ctrllimited=True)
        motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
    hand = mujoco.MjSpec.from_file(str(robot_path(GRIPPER)))
    hand.option.impratio, hand.option.cone = IMPRATIO, spec.option.cone
    mount.add_frame().attach_body(hand.body("base_mount"), "hand_", "")
    for side in ("left", "right"):
        pad = spec.body(f"hand_{side}_pad")
        for k, (x, z) in enumerate((x, z) for x in (-PAD_X, PAD_X) for z in PAD_Z):
            pad.add_site(name=f"{side}{k}", pos=[x, PAD_Y, z])
    box = world.add_body(name="box", pos=[0, 0, BOX_SIZE[2]])
    box.add_freejoint()
    box.add_geom(
        name="box",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=list(BOX_SIZE),
        mass=BOX_MASS,
        solref=[0.004, 1],
    )
    for k, (x, y) in enumerate((x, y) for x in (-1, 1) for y in (-1, 1)):
        box.add_site(name=f"foot{k}", pos=[x * BOX_SIZE[0], y * BOX_SIZE[1], -BOX_SIZE[2]])
    return spec.compile()


def law_of(plant: mujoco.MjModel) -> InverseDynamicsQP:
    """Return the law: mount and fingers follow references, pads and floor hold the box."""
    fingers = {"left": (-1, 0, 0), "right": (1, 0, 0)}
    pads = [
        mb.Contact(
            f"{side}{k}",
            normal=normal,
            friction=FRICTION / MARGIN,
            sides=8,
            other="box",
            min_force=0.5,
        )
        for side, normal in fingers.items()
        for k in range(4)
    ]
    floor = [mb.Contact(f"foot{k}", friction=0.5) for k in range(4)]
    tasks = [
        PostureTask(("lift", "sideways"), kp=900.0, weight=1.0, name="mount"),
        PostureTask(("hand_right_driver_joint",), kp=100.0, weight=1e-4, name="fingers"),
    ]
    return InverseDynamicsQP(
        mb.read_mjcf(plant),
        tasks,
        [*pads, *floor],
        joint_limits=JointLimits(("lift", "sideways"), reserve=0.2),
        torque_weight=(1e-7, 1e-7, GRIP_WEIGHT),
        torque_reference=True,
        period=PERIOD,
        delay=DELAY,
    )


def mask(t: float) -> np.ndarray:
    """Return which contacts count: pads once the fingers are closed, the floor until the lift."""
    pads, floor = float(t >= CLOSED), float(t < CLOSED + PERIOD)
    return np.array([pads] * 8 + [floor] * 4 + [1.0] * 3)


def step(t: float, start: float, end: float) -> np.ndarray:
    """Return a smooth step from 0 to 1, its rate and the rate of that."""
    length = end - start
    s = float(np.clip((t - start) / length, 0, 1))
    value = s**3 * (10 - 15 * s + 6 * s**2)
    bend = 60 * s * (1 - s) * (1 - 2 * s)
    return np.array([value, 30 * (s * (1 - s)) ** 2 / length, bend / length**2])


def motion(law: InverseDynamicsQP, q0: np.ndarray):
    """Return the reference: fingers close, the mount lifts, shakes up and down, then sideways."""
    rest = law.reference_at(q0)
    place, speed, change = (law.reference_slices[f"mount.{part}"] for part in ("q", "v", "a"))
    fingers, torques = law.reference_slices["fingers.q"], law.reference_slices["torque"]

    def reference(t: float) -> np.ndarray:
        ref = rest.copy()
        ref[torques.stop - 1] = GRIP * (t >= CLOSED)
        ref[fingers] += CLOSING * min(t / CLOSED, 1.0)
        lift = LIFT * step(t, CLOSED, LIFTED)
        ref[[place.start, speed.start, change.start]] += lift
        for axis, (start, end) in enumerate(((LIFTED, SHAKEN), (SHAKEN, DURATION))):
            fade = step(t, start, start + FADE) - step(t, end - FADE, end)
            angle = RATE * (t - start)
            c, s = SHAKE / RATE**2 * np.array([np.cos(angle), np.sin(angle)])
            ref[place.start + axis] += fade[0] * s
            ref[speed.start + axis] += fade[1] * s + fade[0] * RATE * c
            bend = fade[2] * s + 2 * fade[1] * RATE * c - fade[0] * RATE**2 * s
            ref[change.start + axis] += bend
        return ref

    return reference


def run() -> tuple[mujoco.MjModel, Recording]:
    """Return the plant's model, and the recording of the generated C in MuJoCo."""
    plant = model()
    law = law_of(plant)
    q0 = np.array(law.system.tree.q0)
    report = mb.validate(
        law,
        plant,
        DURATION,
        reference=motion(law, q0),
        q0=q0,
        delay=DELAY,
        perturb={"mass": MASS},
        scenario=ScenarioOptions(mask=mask),
    )
    return plant, report.runs[0].recording


def slips(plant: mujoco.MjModel, recording: Recording) -> np.ndarray:
    """Return how far the box moves along the pads since it is in the air, m, tick by tick."""
    data, places = mujoco.MjData(plant), []
    sites = [plant.site(f"{side}{k}").id for side in ("left", "right") for k in range(4)]
    for q in recording.q[recording.t >= LIFTED]:
        data.qpos = q
        mujoco.mj_kinematics(plant, data)
        places.append(data.body("box").xpos[1:] - data.site_xpos[sites].mean(axis=0)[1:])
    return np.linalg.norm(np.array(places) - places[0], axis=1)


def figures() -> Iterator[Figure]:
    """Yield the figures of the run."""
    plant, recording = run()
    name = f"2F85 and a box of {BOX_MASS:g} kg"
    words = (
        f"lifted, shaken at 2 g, margin {MARGIN:g}, impratio {IMPRATIO:g}, mass +{MASS:.0%}, "
        f"{DELAY} tick late"
    )
    if recording.events:
        yield Figure(name, words, "seconds until the run ended", recording.t[-1], 0, "s")
        return
    yield Figure(name, words, "slip", 1e3 * slips(plant, recording).max(), 0.5, "mm")
    held = recording.t >= LIFTED
    normal = recording.contact_normal[held, :8].sum(axis=1)
    across = recording.contact_force[held, :8, 1:].sum(axis=1)
    used = np.linalg.norm(across, axis=1) / np.maximum(FRICTION * normal, 1e-9)
    yield Figure(name, words, "largest share of the friction used", used.max(), 1.0)
    outside = max(0.0, -float(recording.contact_margin[held].min()))
    yield Figure(name, words, "largest force beyond a cone", outside, 1e-6, "N")
    error = 1e3 * np.linalg.norm(recording.monitor["error"][held, :2], axis=1)
    yield Figure(name, words, "mount: largest error", error.max(), None, "mm")
    bad = int(np.count_nonzero(recording.status))
    yield Figure(name, words, "ticks without a solution", bad, 0)
