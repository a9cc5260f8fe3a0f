"""`System`: model and constraints joined into named CasADi Functions.

`M a + h = f + f_passive + Aᵀ lam`, `A a + c = 0`, in MuJoCo's order and frames. Every
member is a `ca.Function` with named inputs and outputs; it takes SX, MX, DM and NumPy alike
and is built when it is first used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.constraints import user_rows
from mbcasadi.description import Actuator, Coverage, Equality, RigidTree, Sensor
from mbcasadi.description.parameters import NO_PARAMETERS, Parameters
from mbcasadi.errors import ProblemError, ShapeError, UnsupportedFeatureError
from mbcasadi.model import subtree_fun
from mbcasadi.shapes import column, require_kind, require_name, require_shape
from mbcasadi.short_text import with_table
from mbcasadi.system.expression_frames import expression_frame, require_rotation
from mbcasadi.system.frames import FrameFunctions
from mbcasadi.system.functions import Builder, Expression, user_row_expressions
from mbcasadi.system.joint_roles import JointRoles, joint_roles
from mbcasadi.system.limits import Array, Limits
from mbcasadi.system.members import MEMBERS, RESTS_ON, Member
from mbcasadi.system.model_numbers import ModelNumbers
from mbcasadi.system.named_frames import functions_of_name
from mbcasadi.system.numbers_at_parameters import numbers_at
from mbcasadi.system.parameter_inputs import parameter_values, with_parameter_input
from mbcasadi.system.parametric_system import expose_frame, expose_parameters, system_at
from mbcasadi.system.relative_frames import relative_frame
from mbcasadi.system.rows import Rows, append_rows, rows_as_functions
from mbcasadi.system.scales import Scales, measure_scales
from mbcasadi.system.sensor_functions import (
    body_index,
    find_sensor,
    require_tree,
    sensors_fun,
    usable_sensors,
)


@with_table
@dataclass(frozen=True, eq=False, repr=False)
class System:
    """A mechanism as named Functions, from `read_mjcf`, `from_lagrangian` or `from_equations`.

    A quaternion in q of any length means the rotation of its unit quaternion, as in MuJoCo.
    Only `velocity_map` is linear in it, so that `dq/dt = N v` keeps the length and `∂F/∂q N` is the
    tangent derivative of a member F.

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
        user_rows: number of rows, the last ones, that were added by `with_rows`.
        parameters: the entries of the input p of the members; none unless `read_mjcf` was given
            some.
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
    user_rows: int = 0
    parameters: Parameters = NO_PARAMETERS
    _carried: "System | None" = None
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
        return f"System('{self.name}', {sizes})"

    @checked
    def cached_function(self, key: str, make: Builder) -> ca.Function:
        """Return the Function that `make` builds, cached for this system and `key`.

        For Functions that other packages derive from a system repeatedly.
        """
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    @checked
    def frame(self, name: str, kind: str = "site") -> FrameFunctions:
        """Return pose, Jacobian, velocity and bias Functions of a site, body, geom or camera.

        Args:
            name: name of the frame in the model.
            kind: "site", "body", "geom", "camera" for one that is fixed to its body (it looks along
                its -z axis), or "contact" for a point at which a geom touches a plane
                of the world, as `mb.contacts_of` names it; its Jacobian is that of the material.

        Raises:
            UnknownNameError: no such frame; the message lists the valid names.
        """
        key = (kind, name)
        if kind == "site" and name in self._added_frames:
            return self._added_frames[name]
        if key not in self._frames:
            self._frames[key] = self._frame_of_model(name, kind)
        return self._frames[key]

    def _frame_of_model(self, name: str, kind: str) -> FrameFunctions:
        """Return a frame of the model, with an input p where parameters move bodies."""
        if self._carried is not None and self.parameters.moves_bodies:
            return expose_frame(self._carried.frame(name, kind), len(self.parameters))
        others = [("site", added) for added in self._added_frames]
        at = (lambda q: self.numbers_at(q).tree) if self.parameters.moves_bodies else None
        return functions_of_name(self.tree, name, kind, others, at)

    @checked
    def relative_frame(
        self, name: str, base: str, *, kind: str = "site", base_kind: str = "body"
    ) -> FrameFunctions:
        """Return the Functions of a frame as another one sees it.

        Position, rotation and rates are those in the axes of the base, relative to it and to its
        rotation, as MuJoCo's frame sensors with a reference.

        Args:
            name, kind: of the frame, as in `frame`.
            base, base_kind: of the frame that it is seen from.

        Raises:
            UnknownNameError: no such frame; the message lists the valid names.
            ProblemError: the base is a point without a rotation.
        """
        if self._carried is not None and self.parameters.moves_bodies:
            seen = self._carried.relative_frame(name, base, kind=kind, base_kind=base_kind)
            return expose_frame(seen, len(self.parameters))
        frame, seen_from = self.frame(name, kind), self.frame(base, base_kind)
        key = (f"{kind} from {base_kind}", f"{name} from {base}")
        if key not in self._frames:
            self._frames[key] = relative_frame(frame, seen_from, (self.nq, self.nv))
        return self._frames[key]

    @checked
    def with_frame(
        self, name: str, q: ca.SX, position: Expression, rotation: Expression | None = None
    ) -> "System":
        """Return this system with a frame that is given as expressions of q.

        `frame(name)` then has it, for a `FrameTask`, for `Contact(name, normal, friction)` of
        `InverseDynamicsQP` and `equilibrium`, and for rows of your own. For systems from a
        Lagrangian or from equations, which have no other frames, and for points of a model that
        carry no site. Where two bodies touch each other, the position is that of one point seen
        from the other.

        Args:
            name: of the frame; its kind is "site".
            q: (nq, 1) symbols.
            position: (3, 1) origin in world axes, m.
            rotation: (3, 3) rotation `R_WB`; None for a point, whose angular rows are zero. Tasks
                of orientation need it, and contacts of several points on one body.

        Raises:
            ShapeError: a wrong shape, a symbol that is not in q, or an expression that is NaN or
                infinite at all sampled poses.
            ProblemError: a site of this name is there already, or the rotation is none.
        """
        require_kind("q", q, ca.SX, "symbols, as ca.SX.sym gives them")
        require_shape("q", q, (self.nq, 1), "(nq, 1)")
        if not q.is_valid_input():
            raise ShapeError(f"q holds expressions: {q}; expected a column of symbols (ca.SX.sym)")
        functions = expression_frame(name, q, position, rotation, self.velocity_map(q))
        if rotation is not None:
            require_rotation(functions, [pose for pose, _ in self.scales.states])
        sites = () if self.tree is None else self.tree.frames
        present = [f.name for f in sites if f.kind == "site"]
        if name in (*present, *self._added_frames):
            raise ProblemError(f"'{self.name}' has a frame '{name}' already; give another name")
        added = {**self._added_frames, name: functions}
        system = replace(self, _added_frames=added, _frames={}, _cache={**self._cache})
        if self._carried is None:
            return system
        return expose_parameters(
            system, self._carried.with_frame(name, self._behind(q), position, rotation)
        )

    @checked
    def sensor(self, name: str) -> ca.Function:
        """Return (q, v, a, [u], [act], wrenches, [solver], [t]) → (y), the reading of a sensor.

        All sensors of a system take the same inputs: u where it has controls, act where it has
        activations, t where one of its sensors is a clock. `wrenches` (6, nbody) has for each body,
        the world first, the external force, N, above its moment about the body's origin, N m, world
        axes; `Plant.wrenches` has those of a plant. Only force and torque sensors read them.
        `solver` (n,) has what MuJoCo's solver did, one number for each touch sensor and sensor of a
        limit, where there are such: `Plant.solver_readings`. The cutoff is applied; noise, delay
        and sampling are not.

        Raises:
            UnknownNameError: no such sensor; the message lists the valid names.
            UnsupportedFeatureError: the sensor is no smooth function (contact, ray, limit, …), or
                measures what has no equation here.
        """
        chosen = find_sensor(self.name, self.sensors, self.coverage, self.tree, name)
        return self._of_numbers(f"sensor {name}", lambda s: sensors_fun(s, "sensor", (chosen,)))

    @cached_property
    def joint_roles(self) -> JointRoles:
        """Names of the joints that are driven, dependent on these by constraints, and passive.

        Raises:
            ProblemError: a system that is given by equations.
        """
        return joint_roles(self)

    @property
    def sensor_names(self) -> tuple[str, ...]:
        """Names of the sensors that have a Function, in MuJoCo's order."""
        return tuple(sensor.name for sensor in usable_sensors(self.sensors, self.coverage))

    @property
    def sensor_data(self) -> ca.Function:
        """The inputs of `sensor` → (y): all sensors of `sensor_names` in a column."""
        usable = usable_sensors(self.sensors, self.coverage)
        return self._of_numbers("sensor_data", lambda s: sensors_fun(s, "sensor_data", usable))

    @checked
    def subtree(self, body: str) -> ca.Function:
        """Return (q, v) → (p, velocity, momentum) of a body with all that it carries.

        Shapes: (3,) centre of mass, m; (3,) its velocity, m/s; (6,) linear momentum, kg m/s, above
        the angular one about the centre of mass, kg m²/s; world axes. What is fixed to the world
        counts as mass that does not move.

        Raises:
            UnknownNameError: no such body; the message lists the valid names.
            ProblemError: the system is given by equations.
        """
        index = body_index(require_tree(self.tree, self.name), body)

        def build(system: "System") -> ca.Function:
            q = ca.SX.sym("q", system.nq)
            return subtree_fun(system.numbers_at(q).tree, index, q)

        return self._of_numbers(f"subtree {body}", build)

    def _of_numbers(self, key: str, build: "Callable[[System], ca.Function]") -> ca.Function:
        """Return a Function of the model's numbers, with an input p where these are parameters.

        Args:
            key: of the Function among those that are kept.
            build: makes it for the system that carries its parameters.
        """
        if self._carried is None:
            return self.cached_function(key, lambda: build(self))
        carried, count = self._carried, len(self.parameters)
        return self.cached_function(key, lambda: with_parameter_input(build(carried), count))

    @checked
    def rows(
        self,
        q: ca.SX,
        v: ca.SX,
        *,
        phi: Expression | None = None,
        A: Expression | None = None,
        a0: Expression | None = None,
        psi: Expression | None = None,
        t: ca.SX | None = None,
    ) -> Rows:
        """Return constraint rows on this system's coordinates, as data with named Functions.

        Args:
            q, v: (nq, 1), (nv, 1) symbols.
            phi, A, a0, psi, t: as in `from_equations`. Derivatives are tangent ones: they
                follow `dq/dt = N v`.

        Raises:
            ShapeError: a wrong shape, or a symbol that is none of q, v, t.
        """
        require_shape("q", q, (self.nq, 1), "(nq, 1)")
        require_shape("v", v, (self.nv, 1), "(nv, 1)")
        time = ca.SX.sym("t") if t is None else t
        matrices = user_row_expressions(self.nv, phi, A, a0, psi)
        expressions = user_rows(q, v, self.velocity_map(q), **matrices, t=time)
        return rows_as_functions(expressions, q, v, t)

    @checked
    def with_rows(
        self,
        q: ca.SX,
        v: ca.SX,
        *,
        phi: Expression | None = None,
        A: Expression | None = None,
        a0: Expression | None = None,
        psi: Expression | None = None,
        t: ca.SX | None = None,
    ) -> "System":
        """Return this system with further rows below its own.

        A mask, where there is one, gets ones for them.

        Args:
            q, v: (nq, 1), (nv, 1) symbols.
            phi, A, a0, psi, t: as in `rows`.

        Raises:
            ShapeError: a wrong shape, or a symbol that is none of q, v, t.
        """
        if self._carried is not None:
            behind = self._behind(q)
            return expose_parameters(
                self, self._carried.with_rows(behind, v, phi=phi, A=A, a0=a0, psi=psi, t=t)
            )
        rows = self.rows(q, v, phi=phi, A=A, a0=a0, psi=psi, t=t)
        mask = None if self.mask is None else np.append(self.mask, np.ones(rows.count))
        return replace(
            self,
            nc=self.nc + rows.count,
            builders={**self.builders, **append_rows(self.builders, rows)},
            mask=mask,
            timed=self.timed or t is not None,
            user_rows=self.user_rows + rows.count,
            _cache={},
        )

    @checked
    def with_mask(self, mask: ArrayLike | None = None) -> "System":
        """Return this system with rows that can be switched at run time.

        Args:
            mask: (nc,) initial activity, one or zero; all ones by default.

        Raises:
            ShapeError: a wrong shape, or entries that are neither zero nor one.
        """
        rows_on = np.ones(self.nc) if mask is None else column("mask", mask, self.nc)
        if not np.all(np.isin(rows_on, (0.0, 1.0))):
            raise ShapeError(f"mask holds {rows_on}; expected a one or a zero for each row")
        if self._carried is not None:
            return expose_parameters(self, self._carried.with_mask(rows_on))
        return replace(self, mask=rows_on, _cache={})

    @property
    def carries(self) -> bool:
        """Whether q has the parameters behind it; see `carried`."""
        return self.tree is not None and self.tree.constants > 0

    @property
    def carried(self) -> "System":
        """This system with its parameters behind the configuration; itself where it has none.

        See `parameter_inputs.py`. What is built on a system is built on this one.
        """
        return self if self._carried is None else self._carried

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
    def at(self, values: Mapping[str, ArrayLike] | None = None) -> "System":
        """Return the system with numbers for its parameters: those of the model, some changed.

        Its members have no input p. What is designed at numbers (equilibria, linearisations, gains,
        simulations) is designed at those of the model unless another system is given.

        Args:
            values: by name, of a parameter or of one of its entries.

        Raises:
            UnknownNameError: no such parameter; the message lists those there are.
            ShapeError: a wrong number of entries.
            ProblemError: numbers that no mechanism has: a mass of zero or less, an inertia that
                violates the triangle inequality, negative damping.
        """
        return system_at(self, values)

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

    def _behind(self, q: ca.SX) -> ca.SX:
        """Return symbols of q with symbols of the parameters behind them."""
        return ca.vertcat(q, ca.SX.sym("p", len(self.parameters)))

    @cached_property
    def scales(self) -> Scales:
        """Scales of coordinates and constraint rows, measured at closed poses on first use."""
        return measure_scales(self) if self._carried is None else self._carried.scales

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
        return names + tuple(f"phi{i}" for i in range(self.nc - len(names)))
