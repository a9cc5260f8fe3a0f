"""The two sides of a comparison: a `System`, or a MuJoCo model, each in its own coordinates."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca
import mujoco
import numpy as np

from mbcasadi.description.tree import DOF_SIZE, QPOS_SIZE
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf import capture_warnings, load
from mbcasadi.mjcf.names import model_name
from mbcasadi.mjcf.names import names as unique_names
from mbcasadi.mjcf.tree import JOINT_KINDS
from mbcasadi.plant import Source
from mbcasadi.system import System
from mbcasadi.validation.agreement.derived_quantities import call_by_name
from mbcasadi.validation.agreement.manifold import (
    EQUALITY_ROWS,
    Array,
    active_equalities,
    smooth_copy,
)
from mbcasadi.validation.agreement.mujoco_values import (
    OBJECTS,
    Draw,
    MujocoSample,
    random_draw,
    sample_at,
)
from mbcasadi.validation.agreement.quantities import (
    SHARE,
    Evaluation,
    Quantity,
    quantities_of_frame,
    quantities_of_members,
)
from mbcasadi.validation.agreement.sizes import measure_sizes


class Block(NamedTuple):
    """A joint, or a coordinate of equations of one's own: kind "", it may be any scalar joint."""

    name: str
    kind: str
    q: int
    v: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of entries in q and v."""
        return QPOS_SIZE.get(self.kind, 1), DOF_SIZE.get(self.kind, 1)


Frames = dict[tuple[str, str], dict[str, Quantity]]


class Side(ABC):
    """What is compared.

    Attributes:
        name: of the model.
        blocks: its joints, in order.
        controls: their names, () where they have none.
        sizes: nq, nv, nu, na, nc.
        own_rows: the rows are equations of a user, not those of a model's equality constraints.
        quantities: by name.
        frames: kind and name of those that are compared → quantities by their Functions.
    """

    name: str
    blocks: tuple[Block, ...]
    controls: tuple[str, ...]
    sizes: tuple[int, int, int, int, int]
    own_rows: bool = False
    quantities: dict[str, Quantity]
    frames: Frames

    @abstractmethod
    def add_frames(self, frames: Frames) -> None:
        """Add those of the frames of the other side that it has."""

    @abstractmethod
    def refusal(self, name: str) -> str:
        """Return why it has no value of a quantity of the other side."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Draw:
        """Return a random state."""

    @abstractmethod
    def evaluate(self, names: Sequence[str], at: Draw) -> dict[str, Evaluation]:
        """Return quantities at a state."""


class ModelSide(Side):
    """A MuJoCo model: everything is MuJoCo's own."""

    def __init__(self, source: Source, frames: int, *, world: bool = False) -> None:
        """Read a model of which at most `frames` sites and as many bodies are compared."""
        model = load(source)[0]
        self.name = model_name(model) or "model"
        self._model = smooth_copy(model)
        with capture_warnings():
            self._sizes = measure_sizes(self._model)
        joints = zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr, strict=True)
        self.blocks = tuple(
            Block(name, JOINT_KINDS[int(kind)], int(q), int(v))
            for name, (kind, q, v) in zip(unique_names(model, "joint"), joints, strict=True)
        )
        self.controls = unique_names(model, "actuator", int(model.nu))
        kinds = [int(model.eq_type[i]) for i in active_equalities(model)]
        known = all(kind in EQUALITY_ROWS for kind in kinds)
        nc = sum(EQUALITY_ROWS[kind] for kind in kinds) if known else 0
        self.sizes = (model.nq, model.nv, model.nu, model.na, nc)
        members = quantities_of_members(model.nu, model.na, nc)
        self.quantities, self.frames = {quantity.name: quantity for quantity in members}, {}
        for kind in OBJECTS:
            for i in _spread_ids(model, kind, frames):
                name = mujoco.mj_id2name(model, OBJECTS[kind], i)
                if world or name != "world":
                    self._add_frame(kind, name, i)

    def _add_frame(self, kind: str, name: str, i: int) -> None:
        self.frames[kind, name] = quantities_of_frame(name, kind, i)
        self.quantities |= {each.name: each for each in self.frames[kind, name].values()}

    def add_frames(self, frames: Frames) -> None:
        """Add those of the frames of the other side that the model has."""
        for kind, name in [frame for frame in frames if frame not in self.frames]:
            i = mujoco.mj_name2id(self._model, OBJECTS[kind], name)
            if i >= 0:
                self._add_frame(kind, name, i)

    def refusal(self, name: str) -> str:
        """Return why it has no value of a quantity of the other side."""
        return f"{self.name} has none" if name not in self.quantities else ""

    def draw(self, rng: np.random.Generator) -> Draw:
        """Return a random state, in sizes of the model."""
        return random_draw(self._model, self._sizes, rng)

    def sample(self, at: Draw) -> MujocoSample:
        """Return MuJoCo's data at a state."""
        with capture_warnings():
            return sample_at(self._model, self._sizes, at)

    def evaluate(self, names: Sequence[str], at: Draw) -> dict[str, Evaluation]:
        """Return MuJoCo's quantities at a state."""
        s = self.sample(at)
        with capture_warnings():
            return {name: self.quantities[name].at(s) for name in names}


def _spread_ids(model: mujoco.MjModel, kind: str, count: int) -> list[int]:
    """Return at most `count` ids of named sites or bodies, spread from the last to the first."""
    size = model.nsite if kind == "site" else model.nbody
    named = [i for i in range(size) if mujoco.mj_id2name(model, OBJECTS[kind], i)]
    chosen = np.unique(np.linspace(len(named) - 1, 0, min(count, len(named))).round().astype(int))
    return [named[k] for k in chosen]


class SystemSide(Side):
    """A `System`: its member Functions.

    Attributes:
        refused: unit and reason of each member that the system refuses.
    """

    def __init__(self, system: System) -> None:
        self.name, self._system = system.name, system
        nc = system.nc if "constraint" in system.builders or system.tree else 0
        self.sizes = (system.nq, system.nv, system.nu, system.na, nc)
        names, tree = system.coordinate_names, system.tree
        if tree is None:
            self.blocks = tuple(Block(name, "", i, i) for i, name in enumerate(names))
        else:
            self.blocks = tuple(Block(j.name, j.kind, j.qpos, j.dof) for j in tree.joints)
        self.controls = tuple(actuator.name for actuator in system.actuators)
        self.own_rows = tree is None or bool(system.row_names)
        self._functions: dict[str, Callable[[Draw], Array]] = {}
        self.quantities, self.frames = {}, {}
        self.refused: dict[str, tuple[str, str]] = {}
        for quantity in quantities_of_members(system.nu, system.na, nc):
            name = quantity.name
            if name in system.builders:
                try:
                    self._functions[name] = _of_function(system.member(name))
                    self.quantities[name] = quantity
                except UnsupportedFeatureError as error:
                    self.refused[name] = quantity.unit, str(error)

    def add_frames(self, frames: Frames) -> None:
        """Add those of the frames of the other side that the system has."""
        own = () if self._system.tree is None else self._system.tree.frames
        known = {(frame.kind, frame.name) for frame in own}
        for (kind, name), quantities in frames.items():
            if (kind, name) in known:
                self.frames[kind, name] = quantities
                functions = self._system.frame(name, kind)
                for what, quantity in quantities.items():
                    of = _of_pose if what == "pose" else _of_function
                    self._functions[quantity.name] = of(getattr(functions, what))

    def refusal(self, name: str) -> str:
        """Return why it has no value of a quantity of the other side."""
        if name in self._functions:
            return ""
        return self.refused[name][1] if name in self.refused else f"{self.name} has none"

    def draw(self, rng: np.random.Generator) -> Draw:
        """Return a random state, with coordinates of the size 1."""
        nq, nv, nu, na, _ = self.sizes
        start = np.zeros(nq) if self._system.tree is None else np.array(self._system.tree.q0)
        steps = rng.normal(size=(3, nv))
        q, q1 = (np.array(self._system.integrate(start, step)).ravel() for step in steps[:2])
        v, u, act = (rng.normal(size=size) for size in (nv, nu, na))
        return Draw(q, v, u, act, q, q1, steps[2])

    def evaluate(self, names: Sequence[str], at: Draw) -> dict[str, Evaluation]:
        """Return members at a state."""
        values = {name: self._functions[name](at) for name in names}
        return {n: Evaluation(x, np.ones(x.shape), SHARE) for n, x in values.items()}


def _of_function(function: ca.Function) -> Callable[[Draw], Array]:
    """Return a Function's first output at a draw; time is zero."""
    return lambda at: call_by_name(function, at._asdict() | {"t": 0.0})


def _of_pose(function: ca.Function) -> Callable[[Draw], Array]:
    def value(at: Draw) -> Array:
        p, R = function(at.q)
        return np.column_stack([R.full(), p.full()])

    return value


def side_of(model: System | Source, frames: int) -> ModelSide | SystemSide:
    """Return a side.

    Raises:
        ModelError: a model that MuJoCo refuses.
    """
    return SystemSide(model) if isinstance(model, System) else ModelSide(model, frames)
