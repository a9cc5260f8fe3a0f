"""`System`: model and constraints joined into named CasADi Functions.

`M a + h = f + f_passive + Aᵀ lam`, `A a + c = 0`, in MuJoCo's order and frames. Every
member is a `ca.Function` with named inputs and outputs; it takes SX, MX, DM and NumPy alike
and is built when it is first used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import casadi as ca

from mbcasadi.description import Actuator, Coverage, Equality, RigidTree
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.shapes import require_name
from mbcasadi.system.frames import FrameFunctions, frame_functions
from mbcasadi.system.limits import Limits

Builder = Callable[[], ca.Function]

MEMBERS = (
    "mass_matrix",
    "bias_force",
    "passive_force",
    "actuation",
    "actuator_bias",
    "actuator_force",
    "act_dot",
    "constraint",
    "constraint_jacobian",
    "constraint_velocity",
    "constraint_bias",
    "loop_jacobian",
    "loop_bias",
    "velocity_map",
    "integrate",
    "difference",
)


class Member:
    """One named Function of a `System`, built on first use and kept."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, system: "System | None", owner: type | None = None) -> ca.Function:
        if system is None:
            return self  # type: ignore[return-value]  # the class attribute, for its docstring
        return system.member(self.name)


@dataclass(frozen=True, eq=False)
class System:
    """A mechanism as named Functions; made by `read_mjcf`, `from_lagrangian`, `from_equations`.

    Attributes:
        name: model name.
        nq, nv, nu, na, nc: sizes of configuration, velocity, control, activation and of all
            bilateral constraint rows.
        builders: how each member is made; members that the system lacks are absent.
        limits: control, force and joint ranges.
        coverage: what became of each feature of the model.
        tree, actuators, equalities: the numbers behind a system that was read from a model;
            None and () for one that was given by equations.
        keyframes: named configurations.
    """

    name: str
    nq: int
    nv: int
    nu: int
    na: int
    nc: int
    builders: Mapping[str, Builder]
    limits: Limits
    coverage: Coverage = field(default_factory=Coverage)
    tree: RigidTree | None = None
    actuators: tuple[Actuator, ...] = ()
    equalities: tuple[Equality, ...] = ()
    _cache: dict[str, ca.Function] = field(default_factory=dict, repr=False)
    _frames: dict[tuple[str, str], FrameFunctions] = field(default_factory=dict, repr=False)

    mass_matrix = Member("(q) → (M): (nv, nv) inertia, armature included.")
    bias_force = Member("(q, v) → (h): (nv,) Coriolis, centrifugal and gravity force.")
    passive_force = Member("(q, v) → (f_passive): (nv,) springs, dampers, compensation.")
    actuation = Member("(q) → (B): (nv, nu), `actuator_force = B u + f_0` inside ranges.")
    actuator_bias = Member("(q, v) → (f_0): (nv,) actuator force at u = 0.")
    actuator_force = Member("(q, v, u, [act]) → (f_actuator): (nv,), clipped as MuJoCo does.")
    act_dot = Member("(q, v, u, act) → (act_dot): (na,), only with activation states.")
    constraint = Member("(q, [t]) → (phi): (nc,), zero on the manifold.")
    constraint_jacobian = Member("(q, [t]) → (A): (nc, nv), `dphi/dt = A v + a0`.")
    constraint_velocity = Member("(q, t) → (a0): (nc,), only for time-dependent rows.")
    constraint_bias = Member("(q, v, [t]) → (c): (nc,), `A a + c = 0`.")
    loop_jacobian = Member(
        "(q, [t]) → (A): as `constraint_jacobian`, each pair seen from the nearest body that "
        "carries both its ends. Equal on the manifold; its rank does not grow with a gap."
    )
    loop_bias = Member("(q, v, [t]) → (c): the bias that belongs to `loop_jacobian`.")
    velocity_map = Member("(q) → (N): (nq, nv), `dq/dt = N v`.")
    integrate = Member("(q, dv) → (q_next): (nq,), manifold plus.")
    difference = Member("(q0, q1) → (dv): (nv,), manifold minus, `q1 = q0 ⊕ dv`.")

    def member(self, name: str) -> ca.Function:
        """Return the member Function `name`.

        Raises:
            UnknownNameError: the system has no such member (the message lists those it has).
            UnsupportedFeatureError: a feature of the model would make this member wrong.
        """
        if name not in self._cache:
            refusal = self.coverage.refusal(name)
            if refusal is not None:
                raise UnsupportedFeatureError(
                    f"{self.name}: '{name}' is not available: {refusal.feature}: {refusal.advice}"
                )
            require_name("member of System", name, [m for m in MEMBERS if m in self.builders])
            self._cache[name] = self.builders[name]()
        return self._cache[name]

    def frame(self, name: str, kind: str = "site") -> FrameFunctions:
        """Return pose, Jacobian, velocity and bias Functions of a site or body.

        Args:
            name: name of the frame in the model.
            kind: "site" or "body".

        Raises:
            UnknownNameError: no such frame; the message lists the valid names.
        """
        key = (kind, name)
        if key not in self._frames:
            require_name("kind of frame", kind, ("site", "body"))
            frames = self.tree.frames if self.tree is not None else ()
            known = {f.name: f for f in frames if f.kind == kind}
            require_name(kind, name, list(known))
            assert self.tree is not None  # `known` is empty without a tree
            self._frames[key] = frame_functions(self.tree, known[name])
        return self._frames[key]

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the controls, in the order of u."""
        if self.actuators:
            return tuple(actuator.name for actuator in self.actuators)
        return tuple(f"u{i}" for i in range(self.nu))

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Name of the constraint that each row of phi belongs to."""
        if self.equalities:
            return tuple(e.name for e in self.equalities for _ in range(e.size))
        return tuple(f"phi{i}" for i in range(self.nc))
