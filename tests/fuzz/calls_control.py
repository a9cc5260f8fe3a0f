"""Valid calls of the control laws, the regulators, the tasks and inverse dynamics."""

import casadi as ca
import numpy as np

from bench.law_cases import system_of
from fuzz import calls_motion
from fuzz import examples as ex
from mbcasadi import control
from mbcasadi.control import laws, regulators
from mbcasadi.qp.rows import Row

WEIGHTS = {"Q": np.ones(6), "R": 1.0}


def _bilinear(call):
    """A law of one line: u = -v of the motors."""
    return laws.Command(u=-call.v[:2], a=ca.SX(4, 1))


def _parts():
    """Valid calls of `bind` of each part that inverse dynamics takes."""
    legs = (
        control.JointLimits(),
        control.ActuatorLimits(rate=100.0),
        control.DistanceLimits(5.0),
        control.DisturbanceObserver(),
        control.ForceFeedback(10.0),
        control.FrictionLoss({"FL_hip": 0.1}),
        control.AngularMomentumLimit(2.0),
        control.HalfSpace("FL", 0.0, 5.0),
        control.LoadRamp(0.2, 100.0),
        control.SoftLimit("friction"),
    )
    bar = control.LoopForceLimits({"pin": (-5.0, 5.0)})
    springs = control.RigidSprings(("spring",))
    laws_of = {ex.walking_law: legs, ex.inverse_dynamics: (bar,), ex.springy_law: (springs,)}
    return {
        f"control.{type(part).__name__}.bind": {"self": part, "design": law()}
        for law, parts in laws_of.items()
        for part in parts
    }


def _task(name, task, system=None):
    """Valid calls of the methods of a task, on the five-bar by default."""
    system = system or ex.five_bar()
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    ref = {slot.name.rpartition(".")[2]: ca.SX.sym("r", slot.size) for slot in task.slots(system)}
    state = {"self": task, "system": system, "q": q, "v": v, "ref": ref}
    gains = control.Gains(*(np.ones(len(task.components(system))) for _ in range(3)))
    home = f"control.{name}"
    return {
        **{
            f"{home}.{m}": {"self": task, "system": system}
            for m in ("components", "units", "slots")
        },
        f"{home}.residual": state,
        f"{home}.rows": state | {"gains": gains},
        f"{home}.hold_reference": {"self": task, "system": system, "q": system.tree.q0},
    }


def _output_task(name, task):
    """Valid calls of the methods of a task of an output on the five-bar."""
    output = {"self": task, "system": ex.five_bar()}
    return _task(name, task) | {f"control.{name}.output": output}


def calls_of_laws():
    system, theta, task = ex.five_bar(), ex.theta(), control.PostureTask()
    q, v, servo = ex.servo()
    q0, pd = system.tree.q0, {"stiffness": 1.0, "damping": 1.0}
    home = "control.laws."
    with_task = {"system": system, "task": task}
    with_theta = {"system": system, "coordinates": theta}
    calls = {
        "adaptive_tracking": {"system": system, "parameters": ["body:*:mass"], "kd": 1.0},
        "computed_torque": with_task,
        "qr_inverse_dynamics": with_task,
        "gravity_compensated_pd": with_task | pd,
        "impedance_control": with_task | pd,
        "constraint_force_control": {"system": system},
        "dependent_regulation": {"system": system, "kp": 1.0, "kd": 1.0},
        "dependent_tracking": {"system": system, "kd": 1.0},
        "hybrid_motion_force_control": with_theta | {"gains": laws.ForceGains(0.5, 1.0)},
        "passive_joint_control": with_theta,
        "projected_inverse_dynamics": with_theta | {"system": system_of("five_bar_driven")},
        "quasi_velocity_force": with_theta,
        "quasi_velocity_tracking": with_theta,
        "servo_control": {"system": system, "servo": servo},
        "within_limits": {"law": ex.law()},
        "servo_report": {"system": system, "servo": servo, "q": q0},
        "servo_rows": {"system": system, "q": q, "v": v, "phi": q[0]},
        "keep_rows": {"system": system, "rows": system.rows(q, v, phi=q[0])},
        "input_reach": {"system": system, "q": q0},
        "workspace_input_reach": {"system": system, "poses": q0},
        "sampled_poses": {"system": system, "count": 2},
        "multiplier_tracking": {"system": system, "q": q0},
        "joint_coordinates": {"system": system, "joints": ex.JOINTS},
        "function_coordinates": {"system": system, "theta": theta.theta},
        "chosen_coordinates": {"system": system},
        "Coordinates.interface": {"self": theta, "law": "own"},
        "composite_error": with_theta,
        "gain_condition": with_theta | {"q": [q0], "v": [0 * q0]},
        "make_law": {"system": system, "name": "own", "equations": _bilinear},
        "Adaptation": {"gain": 0.5},
        "DryFriction": {"sigma": 0.5},
        "LawOptions": {"period": 1e-3, "name": "own"},
        "LawInterface": {"slots": (), "tracked": [("q", "rad")], "states": {"s": 0.0}},
        "ForceGains": {"proportional": 0.5},
        "ForceGains.radius": {"self": laws.ForceGains(0.5, 1.0), "period": 1e-3},
        "GainCondition.bound": {
            "self": laws.gain_condition(system, theta, [q0], [0 * q0]),
            "t": [0.0, 0.1],
            "theta0": 0.1,
            "epsilon0": 0.1,
        },
        "Law.reference": {"self": ex.law(), "slices": {"posture_q": np.zeros(4)}},
        "Law.reference_at": {"self": ex.law(), "q": q0},
        "Law.solve": {"self": ex.law(), "q": q0, "v": np.zeros(4)},
        "ServoRows.at": {
            "self": servo,
            "values": tuple(
                ca.SX.sym(*part) for part in (("q", 4), ("v", 4), ("y", 0), ("y", 0), ("y", 0))
            ),
        },
    }
    return {home + name: arguments for name, arguments in calls.items()}


def calls_of_regulators():
    linear, home = ex.linear(), "control.regulators."
    K = regulators.lqr_gain(linear, **WEIGHTS).K
    feedback = {"linear": linear, "K": K}
    along = {"along": ex.along(), **WEIGHTS}
    rest = {"system": ex.four_bar(), "q": linear.q, "v": linear.v, "u": linear.u}
    calls = {
        "controllability": {"linear": linear},
        "descriptor_form": {"linear": linear},
        "discretize": {"linear": linear, "period": 1e-3},
        "discretize_along": {"linear": ex.along(), "period": 1e-3},
        "encoders": {"system": ex.four_bar(), "positions": ["crank"]},
        "equilibrium": {"system": ex.four_bar()},
        "feedback": feedback,
        "finite_horizon_gains": {"linear": linear, **WEIGHTS, "ticks": 2, "period": 1e-3},
        "finite_horizon_lqr": {"linear": linear, **WEIGHTS, "duration": 2e-3},
        "gain_in_full_coordinates": feedback,
        "linearize": rest,
        "linearize_along": {n: [x] if n != "system" else x for n, x in rest.items()},
        "lqr": {"linear": linear, **WEIGHTS},
        "margins": {
            "linear": linear,
            "controller": regulators.lqr(linear, **WEIGHTS).controller,
        },
        "lqr_gain": {"linear": linear, **WEIGHTS},
        "lti_inverse_dynamics": {"linear": linear},
        "observability": {"linear": linear, "C": linear.output_matrix(ex.encoder())},
        "pole_placement": {"linear": linear, "poles": [-5.0, -6.0]},
        "poles_gain": {"linear": linear, "poles": [-5.0, -6.0]},
        "reduce_descriptor": {"full": ex.descriptor()},
        "require_stabilisable": {"linear": linear},
        "trajectory_gains": along | {"period": 1e-3},
        "trajectory_lqr": along,
        "Gate": {},
        "sensor_output": {"system": ex.sensed(), "sensors": ["turning"]},
        "Linearization.coordinates": {"self": linear, "q": linear.q, "v": linear.v},
        "Linearization.state": {"self": linear, "x": np.zeros(2)},
        "Linearization.activation": {"self": linear, "x": np.zeros(2)},
        "Linearization.output_matrix": {"self": linear, "output": ex.encoder()},
    }
    named = {home + name: arguments for name, arguments in calls.items()}
    return named | calls_motion.calls_of_state_spaces()


def calls_of_tasks():
    ctl, system = ex.inverse_dynamics(), ex.four_bar()
    q = ca.SX.sym("q", 4)
    own = ca.Function("own", [q], [q[:2] ** 2])
    distance = control.DistanceTask("tool", "world", other_kind="body")
    state = {"self": ctl, "q": system.tree.q0, "v": np.zeros(3)}
    return {
        "control.ComTask": {},
        "control.FrameTask": {"frame": "tool"},
        "control.DirectionTask": {"frame": "tool"},
        "control.DistanceTask": {"frame": "tool", "other": "world", "other_kind": "body"},
        "control.FunctionTask": {"function": own, "name": "own"},
        "control.JointRangeTask": {},
        "control.LookAtTask": {"frame": "tool"},
        "control.ServoTask": {"servo": ex.servo()[2]},
        "control.MomentumTask": {},
        "control.DisturbanceObserver": {},
        "control.gains_from_bandwidth": {"bandwidth": 10.0},
        "control.propose_gains": {"period": 1e-3},
        "control.ForceFeedback": {"limit": 10.0},
        "control.FrictionLoss": {},
        "control.RigidSprings": {"joints": ("left-shin",)},
        "control.LoadRamp": {"duration": 0.2, "force": 100.0},
        "control.touch_down": {"contacts": ("FL", "FR"), "on_force": 10.0, "off_force": 5.0},
        "control.AngularMomentumLimit": {"largest": 2.0},
        "control.HalfSpace": {"frame": "FL", "offset": 0.0, "braking": 5.0},
        "control.JointLimits": {},
        "control.DistanceLimits": {"braking": 5.0},
        "control.DistanceLimits.kept": {"self": control.DistanceLimits(), "system": ex.quadruped()},
        "control.ControlMode": {},
        "control.Transition": {"source": "a", "target": "b", "after": 1.0},
        "control.sequence": {
            "law": ctl,
            "modes": {"a": control.ControlMode(), "b": control.ControlMode()},
            "transitions": [control.Transition("a", "b", after=1.0)],
        },
        "control.with_policy": {
            "law": ctl,
            "policy": ca.Function("p", [ca.SX.sym("t")], [ca.SX(3, 1)], ["t"], ["law_ref"]),
        },
        "control.LoadSharing": {},
        "control.LoopForceLimits": {"limits": {"pin": (-5.0, 5.0)}},
        "control.LoopForceWeights": {"weights": {"pin": 1e-3}},
        "control.SoftLimit": {"limits": "joints"},
        "control.ActuatorLimits": {},
        "control.check_task": {"task": control.PostureTask(), "system": system, "states": 1},
        **calls_motion.calls_of_followers(),
        **_parts(),
        **_task("FrameTask", control.FrameTask("tool", position="xz", orientation="")),
        **_task("PostureTask", control.PostureTask()),
        "control.PostureTask.coordinates": {"self": control.PostureTask(), "system": system},
        "control.PostureTask.rates": {"self": control.PostureTask(), "system": system},
        **_task("DirectionTask", control.DirectionTask("tool")),
        **_task("LookAtTask", control.LookAtTask("tool")),
        **_task("JointRangeTask", control.JointRangeTask(), ex.quadruped()),
        **_task("MomentumTask", control.MomentumTask()),
        **_task("ServoTask", control.ServoTask(ex.servo()[2])),
        **_output_task("ComTask", control.ComTask(axes="xz")),
        **_output_task("DistanceTask", distance),
        **_output_task("FunctionTask", control.FunctionTask(own, "own")),
        "control.InverseDynamicsQP": {
            "system": system,
            "tasks": [control.PostureTask(("crank",))],
        },
        "control.InverseDynamicsQP.problem": state,
        "control.InverseDynamicsQP.solve": state,
        "control.InverseDynamicsQP.explain": state,
        "control.InverseDynamicsQP.reference": {"self": ctl, "slices": {"posture_q": 0.1}},
        "control.InverseDynamicsQP.reference_at": {"self": ctl, "q": system.tree.q0},
        "control.with_fallback": {"law": ex.law(), "fallback": "zero"},
        "control.CondensedQP.of": {
            "matrices": ex.matrices(),
            "about": (Row("a", "a", "joints"), Row("b", "b", "joints")),
        },
    }
