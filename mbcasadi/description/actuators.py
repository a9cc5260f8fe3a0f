"""Actuators as plain numbers."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Transmission = Literal["joint", "jointinparent", "tendon", "site", "slidercrank", "body"]
Dynamics = Literal["none", "integrator", "filter", "filterexact", "muscle", "dcmotor"]
Range = tuple[float, float]


@dataclass(frozen=True)
class MuscleCurves:
    """Force-length-velocity curves of a muscle (MJCF `<muscle>`), in normalised length L.

    `L = lower + (l - l_min) / L0`, `L0 = (l_max - l_min) / (upper - lower)`, `V = l̇ / (L0 vmax)`.

    Attributes:
        length_range: (l_min, l_max) of the actuator's length, m or rad (`lengthrange`, compiled).
        operating_range: (lower, upper) of L (`range`).
        force: peak active force, N or N m; from `scale / acc0` where the model gives none.
        shortest, longest: L beyond which no active force is (`lmin`, `lmax`).
        vmax: largest speed of shortening, in L0 per second.
        passive: passive force at `longest`, in peak forces (`fpmax`).
        stretched: active force at the largest speed of lengthening, in peak forces (`fvmax`).
    """

    length_range: Range
    operating_range: Range
    force: float
    shortest: float
    longest: float
    vmax: float
    passive: float
    stretched: float


@dataclass(frozen=True)
class MuscleTimes:
    """Time constants of a muscle's activation, s, and the width of the blend between them."""

    activation: float
    deactivation: float
    width: float = 0.0


@dataclass(frozen=True)
class Thermal:
    """Winding temperature above ambient, `dT/dt = (R i² - T / resistance) / capacitance`.

    Attributes:
        resistance, capacitance: K/W, J/K.
        ambient, reference: °C; the winding's resistance is that of the model at `reference`.
        coefficient: 1/K, of the winding's resistance.
        act: index of the activation state.
    """

    resistance: float
    capacitance: float
    ambient: float
    reference: float
    coefficient: float
    act: int


@dataclass(frozen=True)
class Bristle:
    """LuGre friction: `dz/dt = v - stiffness |v| z / g(v)`, `f = -stiffness z - damping dz/dt`.

    `g = coulomb + (static - coulomb) exp(-(v / stribeck)²)`. The rate has a kink at v = 0.

    Attributes:
        stiffness, damping: N m/rad, N m s/rad.
        coulomb, static: N m.
        stribeck: rad/s.
        act: index of the activation state z.
    """

    stiffness: float
    damping: float
    coulomb: float
    static: float
    stribeck: float
    act: int


@dataclass(frozen=True)
class MotorController:
    """On-board controller of a DC motor: a torque, then the voltage that gives it.

    `torque = kp (u_pos - l) + kd (u_vel - l̇) + ki x_I + u_ff`.

    Attributes:
        kp, ki, kd: gains, of torque.
        max_integral: bound of `x_I`, 0 for none.
        max_voltage: bound of the voltage, 0 for none.
        act: index of the activation state x_I, or None.
    """

    kp: float
    ki: float
    kd: float
    max_integral: float
    max_voltage: float
    act: int | None


@dataclass(frozen=True)
class DcMotor:
    """A DC motor (MJCF `<dcmotor>`): winding, back-EMF, and what its data sheet adds.

    Attributes:
        resistance: R of the winding, Ohm.
        constant: K, N m/A and V s/rad.
        electrical_time: L/R, s; 0 where the current follows the voltage at once.
        current_rate: largest rate of the current, A/s; 0 for none.
        cogging: (amplitude, poles, phase) of `amplitude sin(poles l + phase)`; no force range
            counts for it.
        inputs: "pos", "vel", "ff", "voltage": what its controls mean, in their order.
        controls: index of each of them.
        current: index of the activation state that is the current, A, or None.
        controller, thermal, bristle: or None.
    """

    resistance: float
    constant: float
    electrical_time: float
    current_rate: float
    cogging: tuple[float, float, float]
    inputs: tuple[str, ...]
    controls: tuple[int, ...]
    current: int | None = None
    controller: MotorController | None = None
    thermal: Thermal | None = None
    bristle: Bristle | None = None

    @property
    def affine(self) -> bool:
        """Whether the electrical force is affine in the current's state, or in one voltage."""
        return self.current is not None or (self.inputs == ("voltage",) and self.thermal is None)


@dataclass(frozen=True)
class Pid:
    """What a PID servo remembers: the integral z of its error, the set-point c that it has reached.

    `force = kp (c - l) - kd l̇ + ki z + rate_gain ẇ`; w is what pulls, c follows it no faster than
    `slew`. The integral of the plugin `mujoco.pid` acts with the error of the step that begins,
    `z + step (c - l)`: the gain of the `Actuator` is then `kp + ki step`.

    Attributes:
        ki: gain of the integral.
        step: time step of the model, s.
        max_integral: bound of z; infinite for none.
        slew: largest rate of c, 1/s of the actuator's length; infinite for none.
        rate_gain: of the rate of an activation that is the set-point.
        integral, reached: index of the activation state z, and of c a step ago, or None.
        is_plugin: whether it is the plugin, which clips z to its bound; else z only does not grow
            beyond it.
    """

    ki: float
    step: float
    max_integral: float = np.inf
    slew: float = np.inf
    rate_gain: float = 0.0
    integral: int | None = None
    reached: int | None = None
    is_plugin: bool = False

    @property
    def error_gain(self) -> float:
        """Gain of the error through the integral within a step."""
        return self.ki * self.step if self.is_plugin else 0.0


@summarised
@dataclass(frozen=True)
class Actuator:
    """`force = clip((g0 + g1 l + g2 l̇) clip(u) + b0 + b1 l + b2 l̇)` along its transmission.

    With an activation state, the state replaces `clip(u)`. `muscle_gain` and `muscle_bias` take
    the place of gain and bias; `motor` that of the whole law.

    Attributes:
        name: unique name; unnamed MJCF actuators get `actuator<id>`.
        transmission: kind of element that the force acts on. "body" is adhesion: it pulls at
            the contacts of a body, and has no moment in the equations of the mechanism.
        target: index of the joint, tendon, frame or body; of the crank's frame.
        reference: index of the reference frame (site transmission with `refsite`), or of the
            slider's (`slidercrank`), or None.
        gear: (6,) scale of length and force.
        gain: (g0, g1, g2).
        bias: (b0, b1, b2).
        gain_terms, bias_terms: how many of them MuJoCo reads for the types of this actuator, and so
            may be parameters: one of a fixed gain, none of a bias of type none.
        ctrl_range, force_range: limits, or None.
        armature: rotor inertia; adds `momentᵀ armature moment` to M. Zero from MJCF: there it
            belongs to the target, and is part of the joint's or tendon's armature already.
        damping: damping of the actuator length, part of the passive force. Zero from MJCF, for
            the same reason.
        damping_poly: higher coefficients, () where linear.
        dynamics: "none", or the kind of activation state.
        time_constant: of the filter, s.
        act: index of the activation state that pulls, or None.
        act_range: clip of the activation, or None.
        period: of a servo on a rotation in space, whose set-point means any of
            `u + k period`: MuJoCo uses the one nearest to the length. 0 otherwise.
        rod: length of the connecting rod, m (`slidercrank`).
        ahead: s, the time by which the activation that pulls is ahead of the state: a step of the
            model's with `actearly`, else 0.
        delay: s, by which the control acts later in MuJoCo's own simulation; the equations take
            the control that acts.
        muscle_gain, muscle_bias: curves of a muscle, or None.
        muscle_times: of the activation with muscle dynamics, or None.
        motor: a DC motor, or None.
        pid: the memory of a PID servo, or None for one without.
        explicit: whether MuJoCo's implicit integrators take its force as it is at the start of a
            step, as that of a plugin.
        acts: whether it pulls; False where its group is switched off.
        leader: index of the first control of the same actuator, where it has several; their sum
            keeps `force_range`. None for an actuator of its own.
    """

    name: str
    transmission: Transmission
    target: int
    gear: NDArray[np.float64]
    gain: tuple[float, float, float]
    bias: tuple[float, float, float]
    gain_terms: int = 3
    bias_terms: int = 3
    reference: int | None = None
    ctrl_range: tuple[float, float] | None = None
    force_range: tuple[float, float] | None = None
    armature: float = 0.0
    damping: float = 0.0
    damping_poly: tuple[float, ...] = ()
    dynamics: Dynamics = "none"
    time_constant: float = 1.0
    act: int | None = None
    act_range: tuple[float, float] | None = None
    period: float = 0.0
    rod: float = 0.0
    ahead: float = 0.0
    delay: float = 0.0
    muscle_gain: MuscleCurves | None = None
    muscle_bias: MuscleCurves | None = None
    muscle_times: MuscleTimes | None = None
    motor: DcMotor | None = None
    pid: Pid | None = None
    explicit: bool = False
    acts: bool = True
    leader: int | None = None

    @property
    def gain_moves(self) -> bool:
        """Whether the gain depends on velocity."""
        return bool(self.gain[2]) or self.muscle_gain is not None
