"""MuJoCo as a plant: NumPy in, NumPy out; it knows none of our equations."""

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError, SimulationError
from mbcasadi.plant import api, body_forces, equalities, mocap, options
from mbcasadi.plant.contacts import (
    ContactForce,
    ContactFrame,
    FrameKind,
    contact_forces,
    find_frame,
    find_point,
    frame_position,
    frame_rotation,
    pair_force,
)
from mbcasadi.plant.increments import State, imu_kind, increment
from mbcasadi.plant.measurement import Measurement
from mbcasadi.plant.solver_readings import solver_readings
from mbcasadi.plant.spring_rests import spring_rests
from mbcasadi.plant.wrenches import (
    applied_wrenches,
    external_wrenches,
    sensor_index,
    sensor_reading,
)
from mbcasadi.readable_signatures import readable_signature
from mbcasadi.real_numbers import described, real_array
from mbcasadi.unknown_names import unknown_name

Array = NDArray[np.float64]


class Plant:
    """One MuJoCo simulation, stepped by the caller.

    Args:
        source: MJCF or URDF file, the name of a model of the package, XML text, `MjSpec` or
            `MjModel` (copied, never changed).
        rigid: make equality constraints as stiff as MuJoCo allows (see `options.make_rigid`).
        timestep: s, in place of the model's.
        perturb: relative parameter errors, e.g. `{"mass": 0.1}` (see `options.perturb`).
        seed: None gives every body the same error; a number draws one for each.
    """

    @checked
    def __init__(
        self,
        source: api.Source,
        *,
        rigid: bool = False,
        timestep: float | None = None,
        perturb: Mapping[str, float] | None = None,
        seed: int | None = None,
    ) -> None:
        self.model = api.compile_model(source)
        if timestep is not None:
            if not timestep > 0:
                raise SimulationError(f"timestep is {timestep} s, expected a positive number")
            self.model.opt.timestep = timestep
        self.factors = options.perturb(self.model, perturb or {}, seed)
        if rigid and self.model.neq:
            options.make_rigid(self.model)
        # Divergence is an error; MuJoCo would start again from qpos0.
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        self.data = mujoco.MjData(self.model)
        self._frames: dict[tuple[str, str], ContactFrame] = {}
        self._mean_readings: Array | None = None
        self._states: list[State] = []
        self._scratch: mujoco.MjData | None = None
        self.reset()

    @property
    def name(self) -> str:
        """Name of the model."""
        return bytes(self.model.names).split(b"\0", 1)[0].decode()

    @property
    def nq(self) -> int:
        """Size of q."""
        return int(self.model.nq)

    @property
    def nv(self) -> int:
        """Size of v."""
        return int(self.model.nv)

    @property
    def nu(self) -> int:
        """Size of the control."""
        return int(self.model.nu)

    @property
    def na(self) -> int:
        """Size of the activation state."""
        return int(self.model.na)

    @property
    def timestep(self) -> float:
        """Step of the simulation, s."""
        return float(self.model.opt.timestep)

    @property
    def actuator_delay(self) -> float:
        """Longest time by which a control acts later in the simulation, s."""
        return float(np.max(self.model.actuator_delay, initial=0.0))

    @property
    def time(self) -> float:
        """Time of the simulation, s."""
        return float(self.data.time)

    @property
    def q(self) -> Array:
        """(nq,) configuration."""
        return np.array(self.data.qpos)

    @property
    def v(self) -> Array:
        """(nv,) velocity."""
        return np.array(self.data.qvel)

    @property
    def act(self) -> Array:
        """(na,) activation state."""
        return np.array(self.data.act)

    @property
    def spring_rests(self) -> dict[str, float]:
        """Present rest of each spring that yields, by the name of the parameter's entry."""
        return spring_rests(self.model, self.data)

    @property
    def ctrl_range(self) -> Array:
        """(nu, 2) limits of the control, infinite where there are none."""
        limited = np.array(self.model.actuator_ctrllimited, dtype=bool)[:, None]
        return np.where(limited, self.model.actuator_ctrlrange, [-np.inf, np.inf])

    @checked
    def keyframe(self, name: str) -> Array:
        """Return the (nq,) configuration of the key frame `name`.

        Raises:
            UnknownNameError: the message lists the valid names.
        """
        names = [self.model.key(k).name for k in range(self.model.nkey)]
        if name not in names:
            raise unknown_name("key frame", name, names)
        return np.array(self.model.key_qpos[names.index(name)])

    @checked
    def integrate(self, q: ArrayLike | None, dv: ArrayLike) -> Array:
        """Return (nq,) `q ⊕ dv` for a tangent step `dv` (nv,), from `qpos0` where q is None."""
        result = _column("q", self.model.qpos0 if q is None else q, self.nq).copy()
        mujoco.mj_integratePos(self.model, result, _column("dv", dv, self.nv), 1.0)
        return result

    @readable_signature
    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """Return the tangent step (nv,) from one configuration (nq,) to another."""
        step = np.zeros(self.nv)
        first, second = _column("q0", q0, self.nq), _column("q1", q1, self.nq)
        mujoco.mj_differentiatePos(self.model, step, 1.0, first, second)
        return step

    @checked
    def reset(
        self,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        act: ArrayLike | None = None,
        *,
        mocap_poses: Mapping[str, ArrayLike] | None = None,
        consistent: bool = True,
    ) -> None:
        """Return to time 0, at `q` (nq,), `v` (nv,) and `act` (na,).

        Args:
            q: `qpos0` by default.
            v, act: zero by default.
            mocap_poses: of mocap bodies, by name; those of the model by default.
            consistent: move `q` onto the equality constraints and project `v` on them, with
                MuJoCo's own residual and Jacobian.

        Raises:
            SimulationError: the equality constraints cannot be met from `q`.
            UnknownNameError, ShapeError: see `move_mocap`.
        """
        mujoco.mj_resetData(self.model, self.data)
        self._mean_readings = None
        api.silence_warnings(self.data)
        self.data.qpos[:] = _column("q", self.model.qpos0 if q is None else q, self.nq)
        self.data.qvel[:] = _column("v", np.zeros(self.nv) if v is None else v, self.nv)
        self.data.act[:] = _column("act", np.zeros(self.na) if act is None else act, self.na)
        mocap.move_mocap(self.model, self.data, mocap_poses or {})
        mujoco.mj_normalizeQuat(self.model, self.data.qpos)
        if consistent and self.model.neq:
            equalities.close_equalities(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)
        self._check()

    @readable_signature
    def apply_force(self, force: ArrayLike) -> None:  # called often: checked by hand
        """Apply the generalised force (nv,) from outside, until the next call or `reset`."""
        self.data.qfrc_applied[:] = _column("force", force, self.nv)

    @readable_signature
    def apply_body_forces(self, forces: Mapping[str, ArrayLike]) -> None:  # called often
        """Apply forces (3,), N, world axes, at the centres of mass of the named bodies.

        They act until the next call or `reset`; a body that is not named has none. Each time step
        maps them by the Jacobian at its own state: `Jᵀ F`.

        Raises:
            UnknownNameError: no such body; the message lists the valid names.
            ProblemError: a body that is fixed to the world.
            ShapeError: a force that is not three finite numbers.
        """
        if not isinstance(forces, Mapping):
            raise ProblemError(f"forces is {described(forces)}; expected a mapping from bodies")
        body_forces.apply_body_forces(self.model, self.data, forces)

    @readable_signature
    def move_mocap(self, poses: Mapping[str, ArrayLike]) -> None:  # called often
        """Put mocap bodies at poses in the world, until the next call or `reset`.

        Args:
            poses: by the body's name; (3,) position, m, or (7,) with a quaternion w x y z behind.

        Raises:
            UnknownNameError: no such mocap body; the message lists the valid names.
            ShapeError: another size, numbers that are not finite, a quaternion of no length.
            ProblemError: no mapping.
        """
        mocap.move_mocap(self.model, self.data, poses)

    @property
    def mocap_poses(self) -> Array:
        """(7 nmocap,) position and quaternion of each mocap body, in MuJoCo's order."""
        return mocap.poses_of_mocap(self.data)

    @property
    def external_force(self) -> Array:
        """(nv,) generalised force from outside at the last evaluation, that on bodies included."""
        return body_forces.external_force(self.model, self.data)

    @checked
    def switch_equalities(self, active: Mapping[str, bool]) -> None:
        """Switch equality constraints on or off by name; `reset` restores the model's state.

        Raises:
            UnknownNameError: the message lists the valid names.
        """
        equalities.switch_equalities(self.model, self.data, active)

    @readable_signature
    def step(self, u: ArrayLike, steps: int = 1) -> None:  # called often: checked by hand
        """Apply the control `u` (nu,) for `steps` time steps.

        Raises:
            SimulationError: the simulation diverged (NaN or huge numbers).
            ShapeError, ProblemError: no control (nu,), or no whole number of steps.
        """
        self.data.ctrl[:] = _column("u", u, self.nu)
        if not isinstance(steps, (int, np.integer)):
            raise ProblemError(f"steps is {steps!r}; expected a whole number")
        read, states = np.zeros(self.model.nsensordata), [(self.q, self.v)]
        for _ in range(steps):
            mujoco.mj_step(self.model, self.data)
            read += self.data.sensordata
            states.append((self.q, self.v))
        if steps > 0:
            self._mean_readings, self._states = read / steps, states
        self._check()

    @readable_signature
    def measure(self, u: ArrayLike) -> Measurement:
        """Return accelerations and forces at the present state under `u` (nu,), without a step."""
        model, data = self.model, self.data
        data.ctrl[:] = _column("u", u, self.nu)
        mujoco.mj_forward(model, data)
        self._check()
        return Measurement(
            time=float(data.time),
            q=np.array(data.qpos),
            v=np.array(data.qvel),
            a=np.array(data.qacc),
            act=np.array(data.act),
            u=np.array(data.ctrl),
            motor_force=np.array(data.actuator_force),
            actuator_force=np.array(data.qfrc_actuator),
            constraint_force=np.array(data.qfrc_constraint),
            equality_force=api.equality_force(model, data),
            closure=equalities.closure_gap(model, data),
            residual=float(np.abs(data.efc_pos[: data.ne]).max(initial=0.0)),
            energy=float(np.sum(data.energy)),
        )

    @checked
    def contact_forces(
        self, names: Sequence[str], kind: FrameKind = "site"
    ) -> dict[str, ContactForce]:
        """Return the contact force on each named site, geom or body at the last evaluation.

        Call it after `measure`; a step leaves the forces of its last stage.
        """
        frames = [self._frame(name, kind) for name in names]
        return dict(zip(names, contact_forces(self.model, self.data, frames), strict=True))

    @checked
    def contact_forces_at(
        self, places: Mapping[str, tuple[str, Sequence[float]]]
    ) -> dict[str, tuple[ContactForce, Array]]:
        """Return the contact force at points of bodies, and where these are, by their names.

        Each contact of a body counts for the nearest one of its points.

        Args:
            places: name of the body and (3,) point in its axes, m, for each name.

        Raises:
            UnknownNameError: no such body; the message lists the valid names.
            ShapeError: a point that is not three finite numbers.
        """
        frames = [find_point(self.model, name, *place) for name, place in places.items()]
        forces = contact_forces(self.model, self.data, frames)
        positions = [np.array(frame_position(self.data, frame)) for frame in frames]
        return dict(zip(places, zip(forces, positions, strict=True), strict=True))

    @checked
    def force_between(self, first: str, second: str) -> tuple[ContactForce, Array, Array]:
        """Return the force of one geom on another one, where it acts, and the normal.

        Args:
            first, second: their names, "geom7" for an unnamed one, the seventh from 0 on. The force
                acts on the second, the normal points to it; without a contact both are zero, and
                the place is NaN.

        Raises:
            UnknownNameError: no such geom; the message lists the valid names.
        """
        return pair_force(self.model, self.data, (first, second))

    @checked
    def equality_forces(self, name: str) -> Array:
        """Return the multipliers of the rows of an equality constraint at the last evaluation.

        Those of a `<connect>` are the force on body1, N, world axes. There are none where the
        constraint is off.

        Raises:
            UnknownNameError: no such constraint; the message lists the valid names.
        """
        return equalities.row_forces(self.model, self.data, name)

    @checked
    def sensor(self, name: str) -> Array:
        """Return MuJoCo's reading of a sensor at the last evaluation; call it after `measure`.

        Raises:
            UnknownNameError: no such sensor; the message lists the valid names.
        """
        return sensor_reading(self.model, self.data.sensordata, name)

    @checked
    def mean_sensor(self, name: str) -> Array:
        """Return the mean of MuJoCo's readings of a sensor over the time steps of the last `step`.

        Of a gyroscope and an accelerometer it is the increment of angle or velocity by its time,
        as an IMU gives it: by the motion of its site, which MuJoCo's readings leave by a step and
        by implicit damping. Others are read at the state before each time step. Without a step
        since `reset` it is the reading at the last evaluation.

        Raises:
            UnknownNameError: no such sensor; the message lists the valid names.
        """
        mean, index = self._mean_readings, sensor_index(self.model, name)
        if mean is None or imu_kind(self.model, index) is None:
            return sensor_reading(self.model, self.data.sensordata if mean is None else mean, name)
        if self._scratch is None:
            self._scratch = mujoco.MjData(self.model)
        return increment(self.model, self._scratch, self._states, index)

    @property
    def wrenches(self) -> Array:
        """(6, nbody) external force, N, above moment about the body's origin, N m, world axes.

        At the last evaluation: forces applied to bodies, contacts, connect and weld constraints,
        spatial tendons. The input of `System.sensor`; call it after `measure`.
        """
        return external_wrenches(self.model, self.data)

    @property
    def solver_readings(self) -> Array:
        """(n,) what touch sensors and those of limits read, before their cutoff.

        The input `solver` of `System.sensor`; call it after `measure`.
        """
        return solver_readings(self.model, self.data)

    @property
    def applied_wrenches(self) -> Array:
        """(6, nbody) those of `wrenches` that are in no equation of a `System`.

        Forces applied to bodies, contacts, limits and friction of spatial tendons. The input of
        `dynamics.predicted_readings`; call it after `measure`.
        """
        return applied_wrenches(self.model, self.data)

    @readable_signature
    def frame_position(self, name: str, kind: FrameKind = "site") -> Array:
        """Return the (3,) position of a site, geom or body at the last evaluation, m."""
        return np.array(frame_position(self.data, self._frame(name, kind)))

    @readable_signature
    def frame_rotation(self, name: str, kind: FrameKind = "site") -> Array:
        """Return the (3, 3) rotation of a site, geom or body at the last evaluation."""
        return frame_rotation(self.data, self._frame(name, kind))

    def _frame(self, name: str, kind: FrameKind) -> ContactFrame:
        """Return a frame; it is called often, and looks up and checks its arguments once."""
        is_text = isinstance(name, str) and isinstance(kind, str)
        known = self._frames.get((name, kind)) if is_text else None
        if known is None:
            known = self._frames[name, kind] = self._find_frame(name, kind)
        return known

    @checked
    def _find_frame(self, name: str, kind: FrameKind) -> ContactFrame:
        return find_frame(self.model, name, kind)

    def _check(self) -> None:
        quantity = api.divergence(self.data)
        if quantity:
            raise SimulationError(
                f"the plant diverged at t = {self.data.time:.6g} s: its {quantity} holds NaN or "
                "huge numbers; use a smaller time step, softer constraints or another controller"
            )


def _column(name: str, value: ArrayLike, size: int) -> Array:
    array = real_array(name, value)
    if array.shape not in {(size,), (size, 1)}:
        raise ShapeError(f"{name} has shape {array.shape}, expected ({size},)")
    if not np.isfinite(array).all():
        raise ShapeError(f"{name} holds NaN or infinity: {array.ravel()}; expected finite numbers")
    return array.reshape(size)
