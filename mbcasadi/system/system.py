"""`System`: model and constraints joined into named CasADi Functions.

`M a + h = f + f_passive + Aᵀ lam`, `A a + c = 0`, in MuJoCo's order and frames. Every
member is a `ca.Function` with named inputs and outputs; it takes SX, MX, DM and NumPy alike
and is built when it is first used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.constraints import user_rows
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.model import subtree_fun
from mbcasadi.shapes import column, require_kind, require_shape
from mbcasadi.short_text import with_table
from mbcasadi.system.expression_frames import expression_frame, require_rotation
from mbcasadi.system.frames import FrameFunctions
from mbcasadi.system.functions import Expression, user_row_expressions
from mbcasadi.system.joint_roles import JointRoles, joint_roles
from mbcasadi.system.mechanism import Mechanism
from mbcasadi.system.named_frames import functions_of_name
from mbcasadi.system.parameter_inputs import with_parameter_input
from mbcasadi.system.parametric_system import expose_frame, expose_parameters, system_at
from mbcasadi.system.relative_frames import relative_frame
from mbcasadi.system.rows import ConstraintRows, append_rows, rows_as_functions
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
class System(Mechanism):
    """A mechanism as named Functions, from `read_mjcf`, `from_lagrangian` or `from_equations`.

    A quaternion in q of any length means the rotation of its unit quaternion, as in MuJoCo.
    Only `velocity_map` is linear in it, so that `dq/dt = N v` keeps the length and `∂F/∂q N` is the
    tangent derivative of a member F.

    Its sizes, numbers and members are those of `Mechanism`.
    """

    @checked
    def frame(self, name: str, kind: str = "site") -> FrameFunctions:
        """Return pose, Jacobian, velocity and bias Functions of a site, body, geom or camera.

        Args:
            name: name of the frame in the model.
            kind: "site", "body", "geom", "camera" for one that is fixed to its body (it looks along
                its -z axis), or "contact" for a point at which a geom touches a plane
                of the world or another geom, as `mb.contacts_of` names it; its Jacobian is that of
                the material.

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
        if self._carried is not None and self.parameters.moves_frames:
            return expose_frame(self._carried.frame(name, kind), len(self.parameters))
        others = [("site", added) for added in self._added_frames]
        at = (lambda q: self.numbers_at(q).tree) if self.parameters.moves_frames else None
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
        if self._carried is not None and self.parameters.moves_frames:
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
        return joint_roles(self, self.scales)

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
    ) -> ConstraintRows:
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
        first = self.nc - sum(equality.size for equality in self.equalities)
        names = tuple(f"phi{first + i}" for i in range(rows.count))
        return replace(
            self,
            nc=self.nc + rows.count,
            builders={**self.builders, **append_rows(self.builders, rows)},
            mask=mask,
            timed=self.timed or t is not None,
            row_names=(*self.row_names, *names),
            row_owners=(*self.row_owners, *((name,) for name in names)),
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
    def carried(self) -> "System":
        """This system with its parameters behind the configuration; itself where it has none.

        See `parameter_inputs.py`. What is built on a system is built on this one.
        """
        return self if self._carried is None else self._carried

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

    def _behind(self, q: ca.SX) -> ca.SX:
        """Return symbols of q with symbols of the parameters behind them."""
        return ca.vertcat(q, ca.SX.sym("p", len(self.parameters)))

    @cached_property
    def scales(self) -> Scales:
        """Scales of coordinates and constraint rows, measured at closed poses on first use."""
        return measure_scales(self) if self._carried is None else self._carried.scales
