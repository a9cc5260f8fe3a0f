"""The walking planner between MPC of a rigid body and inverse dynamics, as one Function.

It computes gait, footholds and paths.

At each tick of the inverse dynamics,

    (q, v, [f_measured], command, u, t, z)
        → (ref, mask, outer_x0, outer_ref, outer_feet, outer_mask, z_next)

- command: speed along the trunk's x and y, m/s, and about the vertical, rad/s.
- u: the forces of the MPC that act, N; they enter `ref`, as does their effect on the trunk.
- f_measured: with `touch_down`, the measured forces n, t1, t2 of each contact, N.
- z: for each foot the place where it left the ground, then the desired pose (x, y, yaw); with
  `touch_down` also the references of the contacts and the flags of the feet. A bad measurement
  leaves it unchanged.
- ref, mask: for the inverse dynamics. outer_*: the inputs of the MPC, for its own ticks.

A swinging foot moves to `c + R(ψ) hip + v t + ½ T v_d + k (v - v_d)`: c and v of the centre of
mass, t the time until it lands, T that of its stance, v_d the desired speed, ψ the yaw in the
middle of the stance, k the step length for each m/s of error.

On a slope all of this is in axes of the ground, z along the normal of the contacts, as the inputs
of the MPC and z are; `ref` is in the world's. The trunk is upright on the ground.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.contacts.friction_cone import FORCE_AXES
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.description import Controller, Signal
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.footsteps import SwingParameters
from mbcasadi.mpc.legged.gait import Gait
from mbcasadi.mpc.legged.nominal_stance import nominal_stance
from mbcasadi.mpc.legged.planner_equations import PlannerEquations
from mbcasadi.mpc.legged.rigid_body import Array
from mbcasadi.mpc.legged.rigid_body_controller import SingleRigidBodyMPC
from mbcasadi.mpc.legged.touch_down import FootFlags
from mbcasadi.shapes import column, require_identifier, require_whole
from mbcasadi.short_text import summarised

PERIOD_ROUNDING = 1e-6  # up to which a ratio of periods counts as a whole number


@summarised
@dataclass(frozen=True)
class WalkingPlanner:
    """The planner's Function and its initial values.

    Attributes:
        controller: for `export_c`: its Function is `(q, v, [f_measured], command, u, t, z) →
            (ref, mask, outer_x0, outer_ref, outer_feet, outer_mask, z_next)`, and z0
            belongs to the pose q0. It commands no actuator by itself.
        u0: forces before the first output of the MPC: the weight, shared by the feet.
        every: ticks of the inverse dynamics in one of the MPC.
        delay: ticks of the MPC from its measurement to when its forces act.
    """

    controller: Controller
    u0: Array
    every: int
    delay: int

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.controller.name,
            "period": self.period,
            "every": self.every,
            "delay": self.delay,
        }

    @property
    def function(self) -> ca.Function:
        """The planner as one named Function."""
        return self.controller.function

    @property
    def speeds(self) -> slice:
        """Entries of the command: speeds along x and y of the base, m/s, and its turn, rad/s."""
        return slice(0, 3)

    @property
    def period(self) -> float:
        """Sample time, s, that of the inverse dynamics."""
        return self.controller.period

    @property
    def z0(self) -> Array:
        """State to start from."""
        return self.controller.z0


@checked
def walking_planner(
    law: InverseDynamicsQP,
    mpc: SingleRigidBodyMPC,
    gait: Gait,
    q0: ArrayLike,
    *,
    trunk: str = "trunk",
    stepping: SwingParameters | None = None,
    delay: int = 1,
    name: str = "walking_planner",
) -> WalkingPlanner:
    """Return the walking planner that joins an inverse-dynamics law and an MPC of forces.

    Tasks of the law beside those of the trunk and the feet have references as well: a `FrameTask`
    in the world keeps its place beside the trunk's desired pose and turns with it, a `ComTask` has
    the motion of the rigid body, and all others, such as a posture, hold what they have at q0.

    Args:
        law: with a FrameTask named `trunk` of the trunk's body, one of each contact's position,
            named as the contact, and `force_reference=True`.
        mpc: of the same robot; its feet in the order of the law's contacts.
        gait: as many offsets as feet.
        q0: (nq,) feet on the ground below the hips: gives the heights and the places of the hips.
        trunk: name of the trunk's task.
        stepping: parameters of the swing.
        delay: of the MPC, in its own ticks; the planner predicts the body over it.
        name: a C identifier.

    Raises:
        ProblemError: feet or periods that do not fit together, contacts on different planes,
            invalid numbers.
        UnknownNameError: the law lacks a slice of the reference.
        ShapeError: q0 has a wrong shape.
    """
    feet = len(law.contacts)
    if not feet == mpc.body.feet == len(gait.offsets):
        raise ProblemError(
            f"{feet} contacts, {mpc.body.feet} feet of the rigid body, {len(gait.offsets)} offsets "
            "of the gait; expected the same number"
        )
    every = ticks_of(mpc.controller.period, law.period)
    require_whole(0, delay=delay)
    require_identifier("name", name)
    stepping = stepping or SwingParameters()
    pose = column("q0", q0, law.system.nq)
    equations = PlannerEquations(
        law=law,
        body=mpc.body,
        gait=gait,
        stepping=stepping,
        stance=nominal_stance(law.system, law.contacts, pose),
        trunk=trunk,
        horizon=mpc.horizon,
        period=mpc.controller.period,
        delay=delay,
        q0=pose,
    )
    return WalkingPlanner(
        _controller_data(equations, name, law.controller, mpc.controller),
        np.tile(mpc.body.standing_force / feet, feet),
        every,
        int(delay),
    )


def ticks_of(slow: float, fast: float) -> int:
    """Return the ticks of a law in one of the MPC above it.

    Args:
        slow, fast: their periods, s.

    Raises:
        ProblemError: not a whole number of them.
    """
    ratio = slow / fast
    if round(ratio) < 1 or abs(ratio - round(ratio)) > PERIOD_ROUNDING * ratio:
        raise ProblemError(f"the MPC's period {slow:g} s is not a multiple of {fast:g} s")
    return round(ratio)


def _controller_data(
    equations: PlannerEquations, name: str, inner: Controller, outer: Controller
) -> Controller:
    """Return the planner with the names and units of both laws for its inputs and outputs."""
    inside = {signal.name: signal for signal in inner.inputs}
    outside = {f"outer_{signal.name}": signal for signal in outer.inputs}
    forces, function = outer.outputs[0], equations.function(name)
    components = [f"{c.frame}.{axis}" for c in equations.law.contacts for axis in FORCE_AXES]
    state, units = _state_names(equations, outside["outer_feet"].components)
    signals = {
        **{name: replace(signal, name=name) for name, signal in (inside | outside).items()},
        "t": Signal("t", ("t",), ("s",)),
        "command": Signal("command", ("vx", "vy", "turn"), ("m/s", "m/s", "rad/s")),
        "u": forces,
        "f_measured": Signal("f_measured", tuple(components), ("N",) * len(components)),
        "z": Signal("z", state, units),
        "z_next": Signal("z_next", state, units),
    }
    return Controller(
        name=function.name(),
        function=function,
        inputs=tuple(signals[name] for name in function.name_in()),
        outputs=tuple(signals[name] for name in function.name_out()),
        u_min=np.zeros(0),
        u_max=np.zeros(0),
        z0=equations.z0,
        period=inner.period,
        source=inner.source,
        notes={"law": "gait, footholds and swings between MPC and inverse dynamics"},
    )


def _state_names(
    equations: PlannerEquations, places: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and units of the entries of z."""
    names = [*(f"left.{place}" for place in places), "goal.x", "goal.y", "goal.yaw"]
    units = ["m"] * (len(places) + 2) + ["rad"]
    if equations.stepping.touch_down is not None:
        flags = [
            f"foot_{k}.{flag}" for k in range(len(equations.feet)) for flag in FootFlags._fields
        ]
        names += [*(f"reference.{place}" for place in places), *flags]
        units += ["m"] * len(places) + [""] * len(flags)
    return tuple(names), tuple(units)
