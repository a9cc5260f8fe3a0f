"""The two sides of a comparison: a `System`, or a MuJoCo model, each in its own coordinates."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca
import mujoco
import numpy as np

from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf import capture_warnings, load
from mbcasadi.mjcf.names import model_name
from mbcasadi.mjcf.names import names as unique_names
from mbcasadi.plant import Source
from mbcasadi.system import System
from mbcasadi.validation.agreement import frame_values
from mbcasadi.validation.agreement.equality_rows import EQUALITY_ROWS, active_equalities
from mbcasadi.validation.agreement.manifold import Array, smooth_copy
from mbcasadi.validation.agreement.references import (
    SHARE,
    Reference,
    references_of_frame,
    references_of_members,
)
from mbcasadi.validation.agreement.samples import Sample, random_sample
from mbcasadi.validation.agreement.sizes import measure_sizes

NQ = {"free": 7, "ball": 4, "slide": 1, "hinge": 1}
NV = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}
KINDS = {0: "free", 1: "ball", 2: "slide", 3: "hinge"}
"""Of MuJoCo's joints, by their number."""


class Block(NamedTuple):
    """A joint, or a coordinate of equations of one's own: kind "", it may be any scalar joint."""

    name: str
    kind: str
    q: int
    v: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of entries in q and v."""
        return NQ.get(self.kind, 1), NV.get(self.kind, 1)


class Draw(NamedTuple):
    """A state, a second configuration and a step, in the coordinates of one side."""

    q: Array
    v: Array
    u: Array
    act: Array
    q0: Array
    q1: Array
    dv: Array


class Evaluation(NamedTuple):
    """A quantity at a state, what it is divided by, and the least value of an error's base."""

    value: Array
    size: Array
    share: float


class Side(ABC):
    """What is compared.

    Attributes:
        name: of the model.
        blocks: its joints, in order.
        controls: their names, () where they have none.
        sizes: nq, nv, nu, na, nc.
        own_rows: the rows are equations of a user, not those of a model's equality constraints.
    """

    name: str
    blocks: tuple[Block, ...]
    controls: tuple[str, ...]
    sizes: tuple[int, int, int, int, int]
    own_rows: bool = False

    @abstractmethod
    def units(self) -> dict[str, str]:
        """Return name → unit of its quantities."""

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

    def __init__(self, source: Source, frames: int) -> None:
        model = load(source)[0]
        self.name = model_name(model) or "model"
        self._model = smooth_copy(model)
        with capture_warnings():
            self._sizes = measure_sizes(self._model)
        self.blocks = tuple(
            Block(
                name,
                KINDS[int(model.jnt_type[i])],
                int(model.jnt_qposadr[i]),
                int(model.jnt_dofadr[i]),
            )
            for i, name in enumerate(unique_names(model, "joint"))
        )
        self.controls = unique_names(model, "actuator", int(model.nu))
        kinds = [int(model.eq_type[i]) for i in active_equalities(model)]
        known = all(kind in EQUALITY_ROWS for kind in kinds)
        nc = sum(EQUALITY_ROWS[kind] for kind in kinds) if known else 0
        self.sizes = (model.nq, model.nv, model.nu, model.na, nc)
        self.references = {r.quantity: r for r in references_of_members(model.nu, model.na, nc)}
        for kind in ("site", "body"):
            for i in frame_values.spread_ids(model, kind, frames):
                name = mujoco.mj_id2name(model, frame_values.OBJECTS[kind], i)
                if name != "world":
                    self._add_frame(kind, name, i)

    def _add_frame(self, kind: str, name: str, i: int) -> None:
        for reference in references_of_frame(name, kind, i).values():
            self.references[reference.quantity] = reference

    def add_frames_of(self, names: Sequence[str]) -> None:
        """Add the frames with these quantities' names, where the model has them."""
        for name in names:
            kind, _, rest = name.partition(" '")
            if kind in frame_values.OBJECTS and name not in self.references:
                frame = rest.rpartition("': ")[0]
                i = mujoco.mj_name2id(self._model, frame_values.OBJECTS[kind], frame)
                if i >= 0:
                    self._add_frame(kind, frame, i)

    def units(self) -> dict[str, str]:
        """Return name → unit of its quantities."""
        return {name: reference.unit for name, reference in self.references.items()}

    def refusal(self, name: str) -> str:
        """Return why it has no value of a quantity of the other side."""
        return f"{self.name} has none" if name not in self.references else ""

    def draw(self, rng: np.random.Generator) -> Draw:
        """Return a random state, in sizes of the model."""
        with capture_warnings():
            s = random_sample(self._model, self._sizes, rng)
        return Draw(s.q, s.v, s.u, s.act, s.q0, s.q1, s.dv)

    def evaluate(self, names: Sequence[str], at: Draw) -> dict[str, Evaluation]:
        """Return MuJoCo's quantities at a state."""
        with capture_warnings():
            data = mujoco.MjData(self._model)
            data.qpos, data.qvel, data.ctrl, data.act = at.q, at.v, at.u, at.act
            mujoco.mj_forward(self._model, data)
            s = Sample(self._model, data, self._sizes, *at)
            return {name: _of_reference(self.references[name], s) for name in names}


def _of_reference(reference: Reference, s: Sample) -> Evaluation:
    value = np.array(reference.value(s), dtype=float)
    return Evaluation(value, np.asarray(reference.size(s)), reference.share)


class SystemSide(Side):
    """A `System`: its member Functions."""

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
        self._units: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        for reference in references_of_members(system.nu, system.na, nc):
            if reference.quantity in system.builders:
                self._add(reference.quantity, reference.unit)

    def _add(self, name: str, unit: str) -> None:
        try:
            self._functions[name] = _of_function(self._system.member(name))
            self._units[name] = unit
        except UnsupportedFeatureError as error:
            self._refused[name] = str(error)

    def add_frames_of(self, names: Sequence[str]) -> None:
        """Add the frames with these quantities' names, where the system has them."""
        known = () if self._system.tree is None else self._system.tree.frames
        frames = {(frame.kind, frame.name) for frame in known}
        for name in names:
            kind, _, rest = name.partition(" '")
            frame, _, what = rest.rpartition("': ")
            if (kind, frame) in frames:
                functions = self._system.frame(frame, kind)
                function = getattr(functions, what)
                self._functions[name] = (
                    _of_pose(function) if what == "pose" else _of_function(function)
                )

    def units(self) -> dict[str, str]:
        """Return name → unit of its quantities."""
        return self._units

    def refusal(self, name: str) -> str:
        """Return why it has no value of a quantity of the other side."""
        if name in self._functions:
            return ""
        return self._refused.get(name, f"{self.name} has none")

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
    fields = function.name_in()

    def value(at: Draw) -> Array:
        result = function.call([ca.DM(getattr(at, f)) if f != "t" else ca.DM(0) for f in fields])[0]
        return np.array(result)

    return value


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
