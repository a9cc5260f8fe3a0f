"""Controllers of random mechanisms, each in one size and one unit system."""

import mujoco
import numpy as np

import mbcasadi as mb
from campaign import bodies_by_hand as by_hand
from campaign import planar_linkages as planar
from campaign.case import Case, Pose, Posture
from campaign.mujoco_mechanics import MujocoMechanics
from campaign.random_trees import legged, looped_tree
from campaign.units import SI, Units
from mbcasadi import models
from mbcasadi.control import ComTask, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact

GRAVITY = 9.81  # m/s²
SLIDE, FREE = int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_FREE)
FEET = ("FL", "FR", "RL", "RR")
SOLES = tuple(f"{side}_foot_{i}" for side in ("left", "right") for i in range(1, 5))


def rate_of(size: float, units: Units) -> float:
    """Return the rate at which a pendulum of this size swings."""
    return float(np.sqrt(GRAVITY / size) / units.time)


def random_limits(rng: np.random.Generator, typical: np.ndarray) -> np.ndarray:
    """Return limits (nu, 2): wide, narrow, one-sided, or none."""
    low, high = -typical * 10 ** rng.uniform(-0.5, 1.5), typical * 10 ** rng.uniform(-0.5, 1.5)
    kind = rng.random(len(typical))
    low, high = np.where(kind < 0.1, -np.inf, low), np.where(kind > 0.9, np.inf, high)
    return np.column_stack([low, high])


def by_equations(
    name, system, mechanics, q0, *, size, units, seed, sizes, force=None, **options
) -> Case:
    """Return a case of a system given by equations: all coordinates track."""
    rng = np.random.default_rng(seed)
    rate = rate_of(size, units)
    typical = force if force is not None else GRAVITY * size**2 * units.torque
    limits = random_limits(rng, np.full(system.nu, typical))
    sizes = np.where(sizes, size * units.length, 1.0)
    weight = rng.uniform(0.1, 1.0, system.nv) / sizes**2
    kp = 4 * rate**2
    controller = InverseDynamicsQP(
        system, [PostureTask(kp=kp, weight=weight)], ctrl_limits=limits, period=1e-3 / rate
    )
    every = np.arange(system.nv)
    return Case(
        f"{name}, {size:g} m, {units.name}", controller, mechanics,
        (Posture(every, every, kp, weight),), limits, np.asarray(q0), rate,
        length=size * units.length, size=sizes, **options,
    )  # fmt: skip


LINKAGES = {
    "four-bar": {
        "points": [(0, 0), (0.2, 0.35), (0.9, 0.5), (0.8, 0)],
        "bodies": [(0, 1), (1, 2), (2, 3)], "ground": [0, 3], "motors": [(0, planar.GROUND)],
    },
    # Three equal cranks under one platform: one row more than the rank, at every pose.
    "parallelogram": {
        "points": [(0, 0), (0.5, 0.1), (1, 0), (0.3, 0.4), (0.8, 0.5), (1.3, 0.4)],
        "bodies": [(0, 3), (1, 4), (2, 5), (3, 4, 5)], "ground": [0, 1, 2],
        "motors": [(0, planar.GROUND), (2, planar.GROUND)],
    },
    # Two freedoms, one motor, one pin said twice.
    "five-bar, one motor": {
        "points": [(0, 0), (-0.15, 0.4), (0.4, 0.75), (0.95, 0.4), (0.8, 0)],
        "bodies": [(0, 1), (1, 2), (2, 3), (3, 4)], "ground": [0, 4],
        "motors": [(0, planar.GROUND)], "repeat": [2],
    },
    "six-bar, massless rod": {
        "points": [(0, 0), (1, 0), (0.2, 0.4), (1.1, 0.6), (0.6, 1.0), (1.5, 0.9), (1.6, 0.0)],
        "bodies": [(0, 2), (2, 3, 4), (3, 1), (4, 5), (5, 6)], "ground": [0, 1, 6],
        "motors": [(0, planar.GROUND), (1, 0)], "massless": [3],
    },
    # A crank, a rod and a slider; the pin of the slider is said twice.
    "slider-crank": {
        "points": [(0, 0), (0.25, 0.3), (1.0, 0.1)], "bodies": [(0, 1), (1, 2), (2,)],
        "ground": [0], "motors": [(0, planar.GROUND)], "slides": [2], "repeat": [2],
    },
}  # fmt: skip
"""Name → the drawing."""


def linkage(name, size, units, seed, **extra) -> Case:
    """Return a case of a linkage; the points of a four-bar are moved at random."""
    rng, drawing = np.random.default_rng(seed), LINKAGES[name] | extra
    points = np.array(drawing.pop("points"))
    if name == "four-bar":
        points = points + 0.05 * rng.standard_normal(points.shape)
    drawn = planar.draw(points, **drawing, size=size, units=units, rng=rng)
    number, rests = f"linkage_{seed}", "massless" in drawing
    return by_equations(
        "massless coupler" if "massless" in extra else name, planar.system_of(drawn, number),
        planar.LinkageMechanics(drawn), drawn.q0, size=size, units=units, seed=seed,
        switched_loops=not rests, spread=0.15 if name == "parallelogram" else 0.2,
        sizes=np.tile([True, True, False], len(drawn.masses)),
    )  # fmt: skip


def held_body(size, units, seed, motors=3) -> Case:
    body = by_hand.held_body(size, units, motors)
    q0 = np.array([*(-body.arm), 1.0, 0, 0, 0])
    return by_equations(
        f"Euler parameters, {motors} motors", by_hand.held_body_system(body, f"held_{seed}"),
        by_hand.HeldBodyMechanics(body), q0, size=size, units=units, seed=seed,
        switched_loops=False, spread=0.3, sizes=np.arange(7) < 3,
    )  # fmt: skip


def particles(size, units, seed) -> Case:
    chain = by_hand.particles(size, units, np.random.default_rng(seed))
    q0 = np.concatenate([[0.6 * r, 0.8 * r] for r in np.cumsum(chain.rods)])
    return by_equations(
        "particles on rods", by_hand.particles_system(chain, f"particles_{seed}"),
        by_hand.ParticlesMechanics(chain), q0, size=size, units=units, seed=seed,
        force=GRAVITY * size * units.force, sizes=np.full(len(q0), True),
    )  # fmt: skip


def by_mujoco(
    name, source, *, size, units, seed, limits=None, poses=(), contacts=(), joints=None, q0=None,
    kp=None, law=None, priority=1.0, com=None, **options,
) -> Case:  # fmt: skip
    """Return a case of an MJCF text, path or spec: joints track, and the frames `poses`.

    Args:
        name, size, units, seed: of the mechanism.
        source: MJCF text, path, or MjSpec.
        limits: (nu, 2) of the controls; None for random ones, "model" for the model's.
        poses: (kind, frame) of the poses that track.
        contacts, joints: those of the controller; all hinges and slides by default.
        q0: name of a keyframe.
        kp: 1/time² of all tasks.
        law: options of the controller.
        com: body whose tree's centre of mass tracks.
        priority: of the poses before the joints: a factor of their weights.
        options: fields of the case.
    """
    rng = np.random.default_rng(seed)
    system, model = mb.read_mjcf(source), compiled(source)
    rate, length = rate_of(size, units), size * units.length
    kp = 4 * rate**2 if kp is None else kp
    if joints is None:
        joints = tuple(j.name for j in system.tree.joints if j.kind in ("hinge", "slide"))
    if limits is None:
        limits = random_limits(rng, typical_forces(model, size, units))
    elif isinstance(limits, str):
        limits = model.actuator_ctrlrange.copy()
    judged: list[Posture | Pose] = []
    for kind, frame in poses:
        weight = np.repeat([1 / length**2, 1.0], 3) * priority * 10 ** rng.uniform(-1, 2)
        judged.append(Pose((kind, frame), frame, kp, weight))
    if com:
        judged.append(Pose(("com", com), "com", kp, np.full(3, 1 / length**2)))
    if joints:
        judged.append(posture_of(model, joints, length, kp, rng))
    tasks = [task_of(task, joints) for task in judged]
    controller = InverseDynamicsQP(
        system,
        tasks,
        contacts,
        ctrl_limits=limits,
        period=1e-3 / rate,
        servo_plant="start",  # the judge has the acceleration of an instant
        **(law or {}),
    )
    frames = [(c.kind, c.frame) for c in contacts]
    frames += [task.frame for task in judged if isinstance(task, Pose)]
    sizes = sizes_of(model, length)
    mechanics = MujocoMechanics(model, frames, sizes)
    return Case(
        f"{name}, {size:g} m, {units.name}", controller, mechanics, tuple(judged), limits,
        np.asarray(system.tree.q0 if q0 is None else system.tree.keyframes[q0]), rate,
        length=length, size=sizes,
        contact_roots=tuple(mechanics.root_of((c.kind, c.frame)) for c in contacts), **options,
    )  # fmt: skip


def task_of(task: Posture | Pose, joints) -> PostureTask | FrameTask | ComTask:
    """Return the controller's task."""
    if isinstance(task, Posture):
        return PostureTask(joints, kp=task.kp, weight=task.weight)
    if task.frame[0] == "com":
        return ComTask(kp=task.kp, weight=task.weight)
    return FrameTask(task.name, kind=task.frame[0], kp=task.kp, weight=task.weight)


def posture_of(model, joints, length, kp, rng) -> Posture:
    """Return the posture of some hinges and slides, with random weights."""
    chosen = [model.joint(joint) for joint in joints]
    slide = np.array([int(model.jnt_type[j.id]) == SLIDE for j in chosen])
    return Posture(
        places=np.array([int(j.qposadr[0]) for j in chosen]),
        dofs=np.array([int(j.dofadr[0]) for j in chosen]),
        kp=kp,
        weight=rng.uniform(0.2, 1.0, len(joints)) / np.where(slide, length, 1.0) ** 2,
    )


def typical_forces(model, size: float, units: Units) -> np.ndarray:
    """Return the force or torque of each motor that carries about one link."""
    slide = model.jnt_type[model.actuator_trnid[:, 0]] == SLIDE
    arm = np.where(slide, 1.0, size * units.length)
    return GRAVITY * size * units.force * arm / np.abs(model.actuator_gear[:, 0])


def compiled(source) -> mujoco.MjModel:
    """Return the compiled model of a spec, a text or a path."""
    if isinstance(source, mujoco.MjSpec):
        return source.compile()
    if source.startswith("<"):
        return mujoco.MjModel.from_xml_string(source)
    return mujoco.MjModel.from_xml_path(source)


def sizes_of(model: mujoco.MjModel, length: float) -> np.ndarray:
    """Return the length for translations and 1 rad for rotations."""
    sizes = np.ones(model.nv)
    for kind, dof in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        count = {SLIDE: 1, FREE: 3}.get(int(kind), 0)
        sizes[dof : dof + count] = length
    return sizes


def tree(size, units, seed, **shape) -> Case:
    poses = [("site", f"s{seed % 4}")] if seed % 2 else []
    return by_mujoco(
        f"tree {seed}", looped_tree(seed, size, units, **shape), size=size, units=units, seed=seed,
        poses=poses,
    )  # fmt: skip


def walker(size, units, seed, legs=4, **options) -> Case:
    rng = np.random.default_rng(seed)
    contacts = [
        Contact(
            f"f{k}", normal=(0.3 * rng.standard_normal(), 0.3 * rng.standard_normal(), 1.0),
            friction=float(rng.uniform(0.3, 1.2)), sides=int(rng.integers(3, 9)),
        )
        for k in range(legs)
    ]  # fmt: skip
    links = options.pop("links", False)
    return by_mujoco(
        f"walker {seed}", legged(seed, size, units, legs=legs, links=links), size=size, units=units,
        seed=seed, poses=[("body", "b12")] if legs == 4 else [], contacts=contacts,
        largest_level=1.0, **options,
    )  # fmt: skip


def robot(name, **options) -> Case:
    return by_mujoco(
        name, str(models.path(name)), size=options.pop("size", 0.5), units=SI,
        seed=options.pop("seed", 1), **options,
    )  # fmt: skip


def feet(names, **options):
    return [Contact(name, **({"friction": 0.7, "sides": 4} | options)) for name in names]
