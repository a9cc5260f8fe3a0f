"""The data of a system: sizes, numbers of the model, and members, each built on first use."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.description import Actuator, Coverage, Equality, PointRow, RigidTree, Sensor
from mbcasadi.description.parameters import NO_PARAMETERS, Parameters
from mbcasadi.errors import ProblemError, UnsupportedFeatureError
from mbcasadi.progress import logged_time
from mbcasadi.shapes import require_name
from mbcasadi.short_text import with_table
from mbcasadi.system.end_of_step import EndOfStep
from mbcasadi.system.frames import FrameFunctions
from mbcasadi.system.functions import Builder
from mbcasadi.system.limits import Array, Limits
from mbcasadi.system.members import MEMBERS, RESTS_ON, Member
from mbcasadi.system.model_numbers import ModelNumbers
from mbcasadi.system.numbers_at_parameters import numbers_at
from mbcasadi.system.parameter_inputs import parameter_values

_log = logging.getLogger(__name__)


@with_table
@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """The sizes, numbers and member Functions of a mechanism.

    Attributes:
        name: model name.
        nq, nv, nu, na, nc: sizes of configuration, velocity, control, activation and of all
            bilateral constraint rows.
        builders: builder of each member; members that the system lacks are absent.
        limits: control, force and joint ranges.
        coverage: treatment of each feature of the model.
        tree, actuators, equalities: the numbers of a system that was read from a model;
            None and () for one that was given by equations.
        sensors: of a system that was read from a model, in MuJoCo's order, those without a smooth
            Function too; `sensor_names` has the others.
        coordinate_names: (nv,) names of the coordinates of a system that was given by equations,
            those of the user's symbols; () for one that was read from a model.
        mask: (nc,) initial activity of each row, one or zero, or None. Where it is given, the
            dynamics take `mask` as their last input: rows are switched at run time.
        timed: constraints depend on the time t.
        semidefinite: M is singular, and positive definite on null(A) only.
        row_names: of the rows, the last ones, that were added by `with_rows`.
        row_owners: names of what each of these belongs to: the row itself, or contacts of one body.
        point_rows: of these rows, those of points of bodies: their derivatives follow formulas.
        parameters: the entries of the input p of the members; none unless `read_mjcf` was given
            some.
        at_end: what the dynamics over a step add, or None: no member has it.
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
    sensors: tuple[Sensor, ...] = ()
    coordinate_names: tuple[str, ...] = ()
    mask: Array | None = None
    timed: bool = False
    semidefinite: bool = False
    row_names: tuple[str, ...] = ()
    row_owners: tuple[tuple[str, ...], ...] = ()
    point_rows: tuple[PointRow, ...] = ()
    parameters: Parameters = NO_PARAMETERS
    at_end: EndOfStep | None = None
    _carried: Self | None = None
    _cache: dict[str, ca.Function] = field(default_factory=dict, repr=False)
    _added_frames: Mapping[str, FrameFunctions] = field(default_factory=dict, repr=False)
    _frames: dict[tuple[str, str], FrameFunctions] = field(default_factory=dict, repr=False)

    mass_matrix = Member("(q) → (M): (nv, nv) inertia, armature included.")
    bias_force = Member("(q, v) → (h): (nv,) Coriolis, centrifugal and gravity force.")
    coriolis_matrix = Member("(q, v) → (C): (nv, nv), `h = C v + g`, `dM/dt = C + Cᵀ`.")
    gravity_force = Member("(q) → (g): (nv,), the bias force at rest.")
    kinetic_energy = Member("(q, v) → (T): ½ vᵀ M v, J.")
    potential_energy = Member("(q) → (V): gravity and springs, J.")
    total_energy = Member("(q, v) → (E): kinetic and potential energy, J.")
    passive_force = Member("(q, v) → (f_passive): (nv,) springs, dampers, compensation.")
    actuation = Member(
        "(q, [v]) → (B): (nv, nu), `actuator_force = B u + f_0` inside ranges; u is the activation "
        "where there is one. It takes v where a gain depends on it: muscles, dampers."
    )
    actuator_bias = Member("(q, v) → (f_0): (nv,) actuator force at u = 0.")
    actuator_force = Member("(q, v, u, [act]) → (f_actuator): (nv,), clipped as MuJoCo does.")
    act_dot = Member("(q, v, u, act) → (act_dot): (na,), only with activation states.")
    constraint = Member("(q, [t]) → (phi): (nc,), zero on the manifold.")
    constraint_rate = Member("(q, v, [t]) → (psi): (nc,), dphi/dt; `A v + a0`; or psi itself.")
    constraint_jacobian = Member(
        "(q, [v], [t]) → (A): (nc, nv), `∂psi/∂v`; `dphi/dt = A v + a0`. It takes v where rows "
        "are nonlinear in v."
    )
    constraint_velocity = Member("(q, [t]) → (a0): (nc,), psi at v = 0, where it is not zero.")
    constraint_bias = Member("(q, v, [t]) → (c): (nc,), `A a + c = 0`.")
    loop_jacobian = Member(
        "(q, [v], [t]) → (A): as `constraint_jacobian`, each pair seen from the nearest body that "
        "carries both its ends. Equal on the manifold; its rank does not grow with a gap."
    )
    loop_rate = Member("(q, v, [t]) → (psi): the rate that belongs to `loop_jacobian`.")
    loop_bias = Member("(q, v, [t]) → (c): the bias that belongs to `loop_jacobian`.")
    center_of_mass = Member(
        "(q, v) → (p, J, bias): (3,) centre of mass of all bodies that can move, m, `dp/dt = J v`, "
        "`bias = J̇ v`; of systems that were read from a model."
    )
    momentum = Member(
        "(q, v) → (momentum, J, bias): (6,) linear momentum above the angular one about the centre "
        "of mass, world axes; J (6, nv) is the centroidal momentum matrix, `bias = J̇ v`."
    )
    velocity_map = Member("(q) → (N): (nq, nv), `dq/dt = N v`.")
    integrate = Member("(q, dv) → (q_next): (nq,), manifold plus.")
    difference = Member("(q0, q1) → (dv): (nv,), manifold minus, `q1 = q0 ⊕ dv`.")

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            **{key: getattr(self, key) for key in ("nq", "nv", "nu", "na", "nc")},
            "parameters": [item.name for item in self.parameters.items],
            "actuators": self.actuator_names,
            "constraints": self.constraint_names,
            "coverage": self.coverage,
        }

    @checked
    def member(self, name: str) -> ca.Function:
        """Return the member Function `name`.

        Raises:
            UnknownNameError: the system has no such member (the message lists those it has).
            UnsupportedFeatureError: a feature of the model would make this member wrong.
        """
        if name not in self._cache:
            self.require_available(name)
            require_name("member of System", name, [m for m in MEMBERS if m in self.builders])
            with logged_time(_log, "building %s of '%s'", name, self.name):
                self._cache[name] = self.builders[name]()
        return self._cache[name]

    @checked
    def require_available(self, *names: str) -> None:
        """Raise unless the model's features leave these members right.

        For those who derive a quantity of a member from the model's numbers themselves.

        Raises:
            UnsupportedFeatureError: a feature of the model would make a member wrong.
        """
        for name in names:
            refusals = [self.coverage.refusal(m) for m in (name, *RESTS_ON.get(name, ()))]
            for refusal in filter(None, refusals):
                raise UnsupportedFeatureError(
                    f"{self.name}: '{name}' is not available: {refusal.feature}: {refusal.advice}"
                )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{key}={getattr(self, key)}" for key in ("nq", "nv", "nu", "na", "nc"))
        return f"{type(self).__name__}('{self.name}', {sizes})"

    @checked
    def cached_function(self, key: str, make: Builder) -> ca.Function:
        """Return the Function that `make` builds, cached for this system and `key`.

        For Functions that other packages derive from a system repeatedly.
        """
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    @property
    def step_is_input(self) -> bool:
        """Whether its dynamics are those over a step whose length is their input `step`."""
        return self.at_end is not None and self.at_end.length is None

    @property
    def carries(self) -> bool:
        """Whether q has the parameters behind it; see `carried`."""
        return self.tree is not None and self.tree.constants > 0

    @checked
    def parameter_values(self, changed: Mapping[str, ArrayLike] | None = None) -> Array:
        """Return p (np,): the model's own numbers, some of them changed.

        Args:
            changed: numbers by name, of a parameter ("body:forearm:com") or of one of its entries
                ("body:forearm:com.x").

        Raises:
            UnknownNameError: no such parameter; the message lists those there are.
            ShapeError: a wrong number of entries.
        """
        return parameter_values(self.parameters, changed)

    @checked
    def numbers_at(self, q: ca.SX) -> ModelNumbers:
        """Return the numbers of the model, with the parameters that are behind q.

        For those who derive a quantity from the numbers themselves.

        Raises:
            ProblemError: the system was given by equations and has none.
        """
        if self.tree is None:
            raise ProblemError(f"'{self.name}' is given by equations; expected a model's system")
        numbers = ModelNumbers(self.tree, self.actuators, self.equalities)
        return numbers_at(numbers, self.parameters, q) if self.tree.constants else numbers

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the controls, in the order of u."""
        if self.actuators:
            return tuple(actuator.name for actuator in self.actuators)
        return tuple(f"u{i}" for i in range(self.nu))

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Name of the constraint that each row of phi belongs to."""
        names = tuple(e.name for e in self.equalities for _ in range(e.size))
        own = self.nc - len(names) - len(self.row_names)
        return names + tuple(f"phi{i}" for i in range(own)) + self.row_names
