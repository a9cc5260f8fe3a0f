"""A commented file of a controller: what it says of a model, and its text."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from mbcasadi.anatomy import RobotDescription, RobotTool
from mbcasadi.control import ProposedGains, propose_gains
from mbcasadi.plant import Ground
from mbcasadi.system import System
from mbcasadi.system.actuator_kinds import actuator_kinds
from mbcasadi.validation.spec.activities import DEPTH, Activity, Walk
from mbcasadi.validation.spec.balanced_push import answered_share
from mbcasadi.validation.spec.damped_joints import left_by_damping, with_calm_observer
from mbcasadi.validation.spec.driving import Drive, Rolling
from mbcasadi.validation.spec.grasping import FREQUENCY, ROUGHNESS, Hold
from mbcasadi.validation.spec.lifting import Balance
from mbcasadi.validation.spec.springs import HeldSprings
from mbcasadi.validation.spec.templates import filled_template
from mbcasadi.validation.spec.tool_motions import EXACT, ToolMotion

Array = NDArray[np.float64]
DELAY = 1  # ticks, of the gains and of the trial
LAG = 5e-3  # s, of usual motors with their current loop
POSTURE_WEIGHT = 1e-3  # beside the task of a base or tool
BEYOND_REACH = 1e-2  # the same, where a tool cannot follow: an outstretched arm does not whip
SWAY = 0.05  # m and rad, of a base that stands while a hand moves
ROUNDING = 1e-9  # of a number of periods
ASIDE, PUSHED = 0.05, 0.1  # of the weight, s: of a push that a balance stands
DEVIATIONS = (1.0, 0.1)  # weights of positions and velocities of a balance
LISTED = 12  # names of a kind in a comment
FALLS = "The base floats, and no foot can touch a plane of the world: this robot falls."


@dataclass(frozen=True)
class Proposal:
    """What the file says of a model.

    Attributes:
        system, robot, ground: the model on its floor, what it is, and the floor that it lacks.
        keyframe, q0: the pose of the model, None for the authored one, and (nq,) where it starts.
        base: body with a free joint, or None.
        contacts: names of the feet's contacts with the floor.
        moved, outside, bent: how the start differs from the model's pose: m up, joints that were
            moved into their ranges, and whether legs were bent.
        activity: what it is to do.
        unheld: why actuators cannot hold the start, "" where they can.
        loads: errors of masses, of bodies that carry what the controller does not know.
        tools, walk, drive: what arms do, and how it walks or drives, or None.
        rolling: wheels on which it stands while it holds its pose, or None.
        hold: what its fingers hold, or None.
        balance: how it lifts its feet, or None.
        driven: hinges and slides that actuators drive.
        loose: joints of limbs on the world that nothing drives, which the others balance.
        springs: stiff ones, which the law holds.
        gains, period, rigid, timestep: of controller and plant, s; None for the model's own step.
        footless: joints of legs that move nothing that stands, as their bodies have no shapes.
        unlimited: why no limits keep the joints of legs within their ranges, "" where they do.
    """

    system: System
    robot: RobotDescription
    ground: Ground | None
    keyframe: str | None
    q0: Array
    base: str | None
    contacts: tuple[str, ...]
    moved: float
    outside: tuple[str, ...]
    bent: bool
    activity: Activity
    unheld: str
    loads: dict[str, float]
    tools: tuple[ToolMotion, ...]
    walk: Walk | None
    drive: Drive | None
    rolling: Rolling | None
    hold: Hold | None
    balance: Balance | None
    driven: tuple[str, ...]
    loose: tuple[str, ...]
    springs: HeldSprings
    gains: ProposedGains
    period: float
    rigid: bool
    timestep: float | None = None
    footless: tuple[str, ...] = ()
    unlimited: str = ""

    def refined(self, finer: int) -> "Proposal":
        """Return the same with shorter steps of the plant, and of the controller."""
        period = self.period / finer
        step = period if self.timestep is None else min(period, self.timestep)
        gains = gains_of(self.system, self.q0, self.driven, self.springs, period)
        return replace(self, period=period, timestep=step, gains=gains)

    def lasting(self, seconds: float) -> str:
        """Return the least multiple of the period, as the file has it, that lasts so long, s."""
        period = float(f"{self.period if self.walk is None else self.walk.period:g}")
        text = f"{ceil(seconds / period - ROUNDING) * period:.10g}"
        return text if "." in text else f"{text}.0"

    @property
    def title(self) -> str:
        """What the robot is and does, in one line."""
        return f"{self.robot.text.splitlines()[0]}; task: {self.activity}"

    @property
    def flies(self) -> bool:
        """Whether the base floats and actuators drive no joint: their forces carry it."""
        return self.base is not None and not self.driven

    @property
    def stands(self) -> bool:
        """Whether contacts with a ground carry the base while it holds its pose."""
        return bool(self.contacts) or self.rolling is not None

    @property
    def falls(self) -> bool:
        """Whether the base floats and has nothing to stand on, under gravity."""
        held = self.stands or self.drive is not None or self.robot.base == "fixed"  # by loops
        tree = self.system.tree
        return bool(tree and any(tree.gravity) and self.base and not (held or self.flies))

    @property
    def imu(self) -> tuple[str, str]:
        """Name and kind of the frame of the model's gyroscope; without one that of the base."""
        tree = self.system.tree
        assert tree is not None
        for each in self.system.sensors:
            if each.kind == "gyro" and each.frame is not None:
                frame = tree.frames[each.frame.index]
                return frame.name, frame.kind
        return self.pushed, "body"

    @property
    def pushed(self) -> str:
        """A body that a push moves: the base, or the last one that a joint moves."""
        tree = self.system.tree
        assert tree is not None
        return self.base or tree.bodies[tree.joints[-1].body].name

    @property
    def start_text(self) -> str:
        """Where the motion starts, and why not at the model's pose."""
        where = "initial pose" if self.keyframe is None else f"key frame {self.keyframe!r}"
        feet = [f"{1e3 * self.moved:+.1f} mm: feet touch"] if self.moved else []
        bent = ["legs bent, the centre of mass over the feet"] if self.bent else []
        inside = [f"moved into the range: {listed(self.outside)}"] if self.outside else []
        arms = ["arms where they can work"] if self.works else []
        return ", ".join([where, *bent, *feet, *inside, *arms])

    @property
    def works(self) -> bool:
        """Whether arms start in another pose than the model's."""
        tree = self.system.tree
        assert tree is not None
        known = tree.q0 if self.keyframe is None else tree.keyframes[self.keyframe]
        return bool(self.tools) and not np.allclose(self.q0, known)

    @property
    def of_arms(self) -> tuple[str, ...]:
        """Driven joints of the arms whose tools move."""
        arms = {name for arm in self.robot.limbs_of("arm") for name in arm.joints}
        return tuple(name for name in self.driven if name in arms)

    @property
    def other_hands(self) -> tuple[RobotTool, ...]:
        """Tools of arms that do not move."""
        moving = [each.tool for each in self.tools]
        return tuple(a.tool for a in self.robot.limbs_of("arm") if a.tool not in moving)

    @property
    def at_rest(self) -> tuple[str, ...]:
        """Driven joints that belong to no arm."""
        return tuple(name for name in self.driven if name not in self.of_arms)

    @property
    def slack(self) -> bool:
        """Whether fewer actuators than joints move what belongs to no arm.

        Two fingers on one tendon: the law would swing the arm to hold their difference.
        """
        system, tree = self.system, self.system.tree
        assert tree is not None
        rows = [joint.dof for joint in tree.joints if joint.name in self.at_rest]
        B = np.array(system.actuation(self.q0))
        A = np.array(system.constraint_jacobian(self.q0)) if system.nc else np.zeros((1, system.nv))
        motions = null_space(A)[rows]
        free = int(np.linalg.matrix_rank(motions))
        return int(np.linalg.matrix_rank(motions.T @ B[rows])) < free

    @property
    def kept(self) -> tuple[str, ...]:
        """Driven joints that keep their posture while the base drives."""
        assert self.drive is not None
        moves = (*self.drive.joints, *self._of_base)
        return tuple(name for name in self.driven if name not in moves)

    @property
    def ranged(self) -> bool:
        """Whether some joint has a range."""
        return bool(np.isfinite(self.system.limits.joint).any())

    @property
    def _of_base(self) -> tuple[str, ...]:
        tree = self.system.tree
        assert tree is not None
        base = self.robot.base_body
        return tuple(j.name for j in tree.joints if tree.bodies[j.body].name == base)

    @property
    def depth(self) -> float:
        """Of a squat, m."""
        return DEPTH * float(np.mean([leg.length for leg in self.robot.limbs_of("leg")]))

    @property
    def control_weights(self) -> list[float]:
        """1 over the squares of the largest controls, or of 1."""
        largest = np.abs(self.system.limits.ctrl).max(axis=1)
        return [float(1 / u**2) if 0 < u < np.inf else 1.0 for u in largest]

    @property
    def aside(self) -> tuple[float, float, float]:
        """Force (3,), N, along x or y, that moves the pushed body most: `ASIDE` of the weight.

        It is less where a balance cannot answer it within the ranges of its controls.
        """
        system, tree = self.system, self.system.tree
        assert tree is not None
        J = np.array(system.frame(self.pushed, "body").jacobian(self.q0))
        weight = sum(body.mass for body in tree.bodies) * float(np.linalg.norm(tree.gravity))
        along = np.eye(3)[int(np.argmax(np.linalg.norm(J[:2], axis=1)))] * ASIDE * weight
        change = np.linalg.solve(np.array(system.mass_matrix(self.q0)), J[:3].T @ along) * PUSHED
        deviations = np.repeat(DEVIATIONS, system.nv)
        weights = deviations, np.array(self.control_weights)
        along *= answered_share(system, self.q0, change, weights, self.period)
        return float(along[0]), float(along[1]), 0.0

    @property
    def rubs(self) -> bool:
        """Whether driven joints have dry friction, and tools, bases or feet follow a path.

        Friction that is not known is a moment on a base that squats, which arms and head follow; it
        turns a foot that carries little.
        """
        tree = self.system.tree
        losses = [j.friction_loss for j in tree.joints if j.name in self.driven] if tree else []
        moves = bool(self.tools or self.drive) or self.activity in ("squat", "lift")
        return moves and any(losses)

    @property
    def cramped(self) -> tuple[str, ...]:
        """Frames of tools whose place has less than the margins to limits that are asked for."""
        return tuple(each.tool.frame for each in self.tools if each.place.margin < 1)

    def text(self, model: str) -> str:
        """Return the file."""
        own = {"walking": self.walk, "driving": self.drive, "grasping": self.hold}
        made = {name: part is not None for name, part in own.items()}
        made["balancing"] = bool(self.loose)
        name = next((name for name, this in made.items() if this), "proposed")
        values = {
            "it": self,
            "model": model,
            "names_by_kind": [each for each in _names_by_kind(self.system) if each[1]],
            "posture_weight": BEYOND_REACH if self.activity == "reach" else POSTURE_WEIGHT,
            "delay": DELAY,
            "falls": FALLS,
            "exact": EXACT.get(self.activity),
            "sway": SWAY,
            "roughness": ROUGHNESS,
            "frequency": FREQUENCY,
            "deviations": DEVIATIONS,
        }
        text = filled_template(f"{name}.toml.j2", values, {"listed": listed, "text": _text})
        aligned = [f"{line:<36} # {note}" if note else line for line, note in _notes(text)]
        return "\n".join(aligned)


def _notes(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a template and their comments, which stand in one column."""
    for each in text.split("\n"):
        line, _, note = each.partition(" ## ")
        yield line, note


def _names_by_kind(system: System) -> Iterator[tuple[str, list[str]]]:
    """Yield what the model has."""
    tree = system.tree
    assert tree is not None
    for actuator, names in actuator_kinds(system).items():
        yield actuator, list(names)
    for kind, plural in (("site", "sites"), ("body", "bodies")):
        yield plural, [frame.name for frame in tree.frames if frame.kind == kind]
    yield "key frames", list(tree.keyframes)


def gains_for(period: float, springs: HeldSprings) -> ProposedGains:
    """Return gains for a period, s, the delay and lag that the file names, and held springs."""
    gains = propose_gains(period, delay=DELAY, lag=LAG, observer=True)
    if gains.bandwidth <= springs.bandwidth:
        return gains
    slower, learns = springs.bandwidth / gains.bandwidth, gains.observer
    assert learns is not None
    return replace(
        gains,
        kp=slower**2 * gains.kp,
        kd=slower * gains.kd,
        bandwidth=springs.bandwidth,
        observer=replace(learns, bandwidth=slower * learns.bandwidth),
    )


def gains_of(
    system: System, q: Array, driven: Sequence[str], springs: HeldSprings, period: float
) -> ProposedGains:
    """Return the gains of a robot: of a period, held springs, and joints that damping stops."""
    left = left_by_damping(system, q, driven, period)
    return with_calm_observer(gains_for(period, springs), left)


def _text(value: str | None) -> str:
    """Return a TOML string."""
    return json.dumps(value, ensure_ascii=False)


def listed(names: Sequence[str]) -> str:
    """Return some names in one line of a comment."""
    rest = f", … ({len(names)})" if len(names) > LISTED else ""
    return ", ".join(repr(name)[1:-1] for name in names[:LISTED]) + rest
