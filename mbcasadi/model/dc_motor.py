"""DC motors: winding, back-EMF, on-board controller, temperature, cogging, friction of bristles.

`i = (V - K l̇) / R` or `di/dt = ((V - K l̇) / R - i) / t_e`, force `K i`. After MuJoCo's technical
note on DC motors; names of the numbers as there. The rate of the bristles and the bounds of
voltage, current rate and integral are continuous with kinks; all else is smooth.
"""

import casadi as ca

from mbcasadi.description.actuators import Bristle, DcMotor, MotorController, Thermal

LEAST = 1e-15  # MuJoCo's lower bound of what it divides by (mjMINVAL)


def electrical_force(
    motor: DcMotor, u: ca.SX, length: ca.SX, rate: ca.SX, act: ca.SX | None
) -> ca.SX:
    """Return `K i` of a motor whose current has no state, the force that a force range bounds.

    Args:
        motor: the motor.
        u: its controls, inside their ranges.
        length, rate: of the actuator.
        act: (na, 1) activation states of the model.
    """
    R = ca.fmax(_resistance(motor, act), LEAST)
    return motor.constant / R * (voltage(motor, u, length, rate, act) - motor.constant * rate)


def mechanical_force(motor: DcMotor, length: ca.SX, rate: ca.SX, act: ca.SX | None) -> ca.SX:
    """Return cogging and friction of the bristles, which no range bounds."""
    amplitude, poles, phase = motor.cogging
    force = amplitude * ca.sin(poles * length + phase) if amplitude else ca.SX(0)
    if motor.bristle is not None and act is not None:
        bristle, z = motor.bristle, act[motor.bristle.act]
        force -= bristle.stiffness * z + bristle.damping * bristle_rate(bristle, z, rate)
    return force


def motor_rates(
    motor: DcMotor, u: ca.SX, length: ca.SX, rate: ca.SX, act: ca.SX
) -> dict[int, ca.SX]:
    """Return the rates of a motor's activation states, by their index.

    Args:
        motor, u, length, rate, act: as in `electrical_force`.
    """
    rates = {}
    V, R = voltage(motor, u, length, rate, act), _resistance(motor, act)
    current = (V - motor.constant * rate) / R
    if motor.controller is not None and motor.controller.act is not None:
        error = u[motor.inputs.index("pos")] - length
        rates[motor.controller.act] = _bounded(motor.controller, error, act)
    if motor.thermal is not None:
        flows = current if motor.current is None else act[motor.current]
        rates[motor.thermal.act] = _warming(motor.thermal, R, flows, act)
    if motor.bristle is not None:
        rates[motor.bristle.act] = bristle_rate(motor.bristle, act[motor.bristle.act], rate)
    if motor.current is not None:
        slope = (current - act[motor.current]) / motor.electrical_time
        if motor.current_rate > 0.0:
            slope = ca.fmin(ca.fmax(slope, -motor.current_rate), motor.current_rate)
        rates[motor.current] = slope
    return rates


def voltage(motor: DcMotor, u: ca.SX, length: ca.SX, rate: ca.SX, act: ca.SX | None) -> ca.SX:
    """Return the terminal voltage: the controller's, within its bound, plus a raw one."""
    given = {name: u[k] for k, name in enumerate(motor.inputs)}
    raw, controller = given.get("voltage", ca.SX(0)), motor.controller
    if controller is None:
        return raw
    torque = controller.kp * (given.get("pos", 0.0) - length)
    torque += controller.kd * (given.get("vel", 0.0) - rate) + given.get("ff", 0.0)
    if controller.act is not None and act is not None:
        torque += controller.ki * act[controller.act]
    V = motor.resistance / motor.constant * torque + motor.constant * rate
    if controller.max_voltage > 0.0:
        V = ca.fmin(ca.fmax(V, -controller.max_voltage), controller.max_voltage)
    return V + raw


def bristle_rate(bristle: Bristle, z: ca.SX, rate: ca.SX) -> ca.SX:
    """Return `dz/dt = v - stiffness |v| z / g(v)`."""
    return bristle_decay(bristle, rate) * z + rate


def bristle_decay(bristle: Bristle, rate: ca.SX) -> ca.SX:
    """Return `-stiffness |v| / g(v)`, 1/s."""
    share = rate / ca.fmax(bristle.stribeck, LEAST)
    g = bristle.coulomb + (bristle.static - bristle.coulomb) * ca.exp(-share * share)
    return -bristle.stiffness * ca.fabs(rate) / ca.fmax(g, LEAST)


def _resistance(motor: DcMotor, act: ca.SX | None) -> ca.SX:
    thermal = motor.thermal
    if thermal is None or act is None:
        return ca.SX(motor.resistance)
    warmer = act[thermal.act] + thermal.ambient - thermal.reference
    return motor.resistance * (1.0 + thermal.coefficient * warmer)


def _warming(thermal: Thermal, R: ca.SX, current: ca.SX, act: ca.SX) -> ca.SX:
    lost = act[thermal.act] / thermal.resistance
    return (R * current * current - lost) / thermal.capacitance


def _bounded(controller: MotorController, error: ca.SX, act: ca.SX) -> ca.SX:
    """Return the rate of the integral: no further away once beyond its bound."""
    assert controller.act is not None  # of a controller with an integral
    x, most = act[controller.act], controller.max_integral
    if not most > 0.0:
        return error
    inward = ca.if_else(x <= -most, ca.fmax(error, 0.0), error)
    return ca.if_else(x >= most, ca.fmin(error, 0.0), inward)
