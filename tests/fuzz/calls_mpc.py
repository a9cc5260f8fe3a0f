"""Valid calls of MPC, trajectory optimisation and the hand-over to other libraries."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
from support.handed_over import FAKE_ALIGATOR, FAKE_CROCODDYL, acados_ocp
from support.interop_stand_ins import FakeDoMpc, FakeOcp

import mbcasadi as mb
from fuzz import examples as ex
from fuzz.driver import Fresh
from mbcasadi import mpc
from mbcasadi.mpc.ocp.stage import Stage


def calls_of_linear_mpc():
    linear, plain = ex.linear(), ex.plain_model()
    cost = {"Q": np.ones(6), "R": 1.0}
    controller = ex.lti_mpc()
    rows = mpc.Output("sum", np.ones((1, 2)), np.zeros((1, 1)), [-9.0], [9.0])
    options = {"horizon": 2, "Q": np.ones(2), "R": 1.0, "outputs": [rows]}
    lti = {"model": plain, "options": mpc.LinearOptions(**options)}
    held = {"linear": linear, "options": mpc.LinearOptions(2, **cost)}
    return {
        "LinearOptions": options,
        "LinearModel.of": {"A": np.eye(2), "B": np.ones((2, 1)), "period": 0.1},
        "LinearModel.interval": {"self": plain, "k": 0},
        "Noise": {},
        "Output": {
            "name": "sum",
            "C": np.ones((1, 2)),
            "D": np.zeros((1, 1)),
            "lower": -9,
            "upper": 9,
        },
        "linear_mpc": held,
        "linear_problem": lti,
        "lti_mpc": lti,
        "offset_free_lti": lti | {"tracked": [[1.0, 0.0]], "noise": mpc.Noise()},
        "offset_free_mpc": held | {"tracked": np.eye(6)[:1]},
        "deviation_output": {"linear": linear, "name": "lean", "row": np.eye(6)[0]},
        "force_output": {"linear": linear, "name": "pin", "rows": np.eye(3)[:1]},
        "friction_output": {"linear": linear, "name": "pin", "constraint": "pin", "friction": 0.5},
        "LinearMPC.reference": {"self": controller, "slices": {"x": np.zeros(2)}},
        "LinearMPC.reference_at": {
            "self": mpc.linear_mpc(linear, mpc.LinearOptions(2, **cost, period=0.1)),
            "q": linear.q,
        },
        "LinearMPC.solve": {"self": controller, "measured": (np.zeros(2),)},
        "LinearMPC.violations": {"self": controller, "inputs": ex.zeros_of(controller.function)},
        "TerminalSet.contains": {"self": ex.terminal_set(), "x": np.zeros(2), "u": np.zeros(1)},
    }


def calls_of_ocps():
    ocp, guess, system = ex.ocp(), ex.ocp_guess(), ex.mass()
    own = mpc.stage_symbols(system)
    iteration = ex.iteration()
    z = iteration.z_from(guess)
    return {

        "Bounded": {"value": own.q},
        "DynamicsOptions": {},
        "DynamicsOptions.acceleration_fun": {"self": mpc.DynamicsOptions(), "system": system},
        "SemiImplicitStep": {},
        "SemiImplicitStep.system": {
            "self": mpc.SemiImplicitStep(),
            "system": system,
            "period": 0.01,
        },
        "SemiImplicitStep.treatment": {"self": mpc.SemiImplicitStep(), "period": 0.01},
        "StepOptions": {},
        "StepOptions.acceleration_fun": {"self": mpc.StepOptions(), "system": system},
        "stage_symbols": {"system": system},
        "discrete_dynamics": {"system": system, "period": 0.1},
        "step_fun": {"system": system, "period": 0.1},
        "optimal_control_problem": {
            "system": system, "horizon": 2, "period": 0.1, "symbols": own,
            "parts": [mpc.Cost(R=1.0), mpc.Bounded(own.q, -9.0, 9.0)],
        },
        **calls_of_stage_parts(system),
        "direct_collocation": {"ocp": ocp, "system": system},
        "collocation_guess": {
            "ocp": mpc.direct_collocation(ocp, system), "system": system, "guess": guess,
        },
        "initial_guess": {"ocp": ocp, "x": np.zeros((5, 2)), "u": np.zeros((4, 1))},
        "rollout": {"ocp": ocp, "x0": np.zeros(2), "p": ocp.parameters()},
        "solve_ocp": {"ocp": ocp, "x0": np.zeros(2)},
        "ocp_solver": {"ocp": ocp},
        "OcpSolver.solve": {"self": mpc.ocp_solver(ocp), "x0": np.zeros(2)},
        "real_time_iteration": {"ocp": ocp, "period": ocp.period, "line_search": 1},
        "regulator_weight": {"ocp": ocp, "x": np.zeros(2), "u": np.zeros(1)},
        "periodic_weights": {
            "ocp": ocp, "x": np.zeros((2, 2)), "u": np.zeros((2, 1)), "p": ocp.parameters()[:2],
        },
        "OptimalControlProblem.names": {"self": ocp, "of": "x"},
        "OptimalControlProblem.parameters": {"self": ocp},
        "OptimalControlProblem.tuned": {"self": ocp, "values": {}},
        "RealTimeIteration.reference": {"self": iteration, "slices": {"setpoint_q": 0.1}},
        "RealTimeIteration.reference_at": {"self": iteration, "q": [0.1]},
        "RealTimeIteration.solve": {"self": iteration, "q": [0.1], "v": [0.0]},
        "RealTimeIteration.z_from": {"self": iteration, "guess": guess},
        "RealTimeIteration.trajectory": {"self": iteration, "z": z},
        "RealTimeIteration.violations": {"self": iteration, "z": z},
    }  # fmt: skip


def calls_of_stage_parts(system):
    forces = mpc.StageForces(ex.inverse_dynamics())
    at = {"self": forces, "system": forces.law.system}
    parts = {
        mpc.Cost: {"Q": [1.0, 1.0], "R": 1.0, "Q_end": [1.0, 1.0], "S": 1.0},
        mpc.StageBounds: {"u": [[-1.0, 1.0]], "du": [[-1.0, 1.0]], "v": [[-1.0, 1.0]]},
        mpc.ContactSchedule: {"closing": 0.01},
    }
    feet = [mb.Contact("FL")]
    touching = mb.with_contacts(ex.quadruped(), feet)
    cones, own = mpc.ContactCones(feet), mpc.stage_symbols(touching)
    swing, forces_cost = mpc.SwingFeet(feet, np.ones(3)), mpc.ActuatorForceCost(1.0)
    at_foot = Stage(touching, swing.slots(touching), own)
    landing = mpc.ContactLanding(feet, 1.0, 1.0)
    switched = touching.with_mask()
    at_landing = Stage(switched, landing.slots(switched), mpc.stage_symbols(switched))
    calls = {
        "SwingFeet": {"contacts": feet, "weight": np.ones(3)},
        "SwingFeet.terms": {"self": swing, "stage": at_foot},
        **{f"SwingFeet.{m}": {"self": swing, "system": touching} for m in ("slots", "unknowns")},
        "ActuatorForceCost": {"weight": 1.0},
        "ActuatorForceCost.terms": {
            "self": forces_cost,
            "stage": Stage(touching, forces_cost.slots(touching), own),
        },
        **{
            f"ActuatorForceCost.{m}": {"self": forces_cost, "system": touching}
            for m in ("slots", "unknowns")
        },
        "ContactLanding": {"contacts": feet, "height_price": 1.0, "speed_price": 1.0},
        "ContactLanding.terms": {"self": landing, "stage": at_landing},
        **{
            f"ContactLanding.{m}": {"self": landing, "system": touching}
            for m in ("slots", "unknowns")
        },
        "JointRanges": {"price": 1.0, "margin": 0.1},
        "JointRanges.terms": {
            "self": mpc.JointRanges(1.0),
            "stage": Stage(touching, (), own),
        },
        **{
            f"JointRanges.{m}": {"self": mpc.JointRanges(1.0), "system": touching}
            for m in ("slots", "unknowns")
        },
        "Disturbance.slots": {"self": mpc.Disturbance(), "system": touching},
        "Disturbance.unknowns": {"self": mpc.Disturbance(), "system": touching},
        "Disturbance.terms": {"self": mpc.Disturbance(), "stage": Stage(touching, (), own)},
        "ContactCones": {"contacts": feet},
        "ContactCones.terms": {"self": cones, "stage": Stage(touching, (), own)},
        **{f"ContactCones.{m}": {"self": cones, "system": touching} for m in ("slots", "unknowns")},
        "StageForces": {"law": forces.law},
        "StageForces.slots": at,
        "StageForces.unknowns": at,
        "StageForces.terms": {"self": forces, "stage": ex.stage_of(forces)},
    }
    for kind, given in parts.items():
        calls[kind.__name__] = given
        calls[f"{kind.__name__}.terms"] = {"self": kind(**given), "stage": ex.stage()}
        for method in ("slots", "unknowns"):
            calls[f"{kind.__name__}.{method}"] = {"self": kind(**given), "system": system}
    return calls


def calls_of_trajectories():
    system, problem, solution = ex.mass(), ex.trajectory_problem(), ex.trajectory()
    own, ocp = mpc.stage_symbols(system), ex.ocp()
    along = {"solution": solution, "ocp": ocp}
    q = ex.symbols()[0]
    return {
        "actuation_measure": {"system": ex.four_bar(), "q": q, "near": ex.four_bar().tree.q0},
        "pin_independent_coordinates": {"system": system, "symbols": own, "q": [0.0]},
        "pose_path": {
            "system": system, "q": own.q, "value": own.q, "times": [0.0, 0.1, 0.2],
            "targets": [[0.0], [0.1], [0.2]], "q0": [0.0],
        },
        "PosePath.guess": {"self": ex.path(), "problem": problem},
        "trajectory_problem": {
            "system": system, "horizon": 2, "duration": (0.1, 0.2), "parts": [mpc.TimeCost()],
        },
        "TimeCost": {},
        "ControlRate": {"bounds": [[-1.0, 1.0]]},
        "Start": {"q0": [0.0]},
        "trajectory_guess": {"problem": problem, "q": np.zeros((5, 1))},
        "trajectory_solver": {"problem": problem},
        "TrajectorySolver.solve": {
            "self": mpc.trajectory_solver(problem), "guess": ex.trajectory_guess(),
        },
        "solve_trajectory": {"problem": problem, "guess": ex.trajectory_guess()},
        "TrajectoryProblem.lengths": {"self": problem, "durations": np.array([0.4])},
        "TrajectorySolution.at": {"self": solution, "times": [0.0, 0.1]},
        "linearize_trajectory": {"solution": solution, "period": 0.1},
        "reference_from_trajectory": along,
        "time_varying_model": along,
        "tracking_guess": along,
        "trajectory_mpc": {
            "solution": solution, "horizon": 2, "period": 0.1, "cost": mpc.Cost(np.ones(2), 1.0),
        },
    }  # fmt: skip


def calls_of_walking():
    gait, t = mpc.trot(0.48), ca.SX.sym("t")
    return {
        "Gait": {"period": 0.5, "duty": 0.5, "offsets": (0.0, 0.5)},
        "Gait.on_ground": {"self": gait, "t": t},
        "Gait.swing_share": {"self": gait, "t": t},
        "Gait.schedule": {"self": gait, "t": t, "horizon": 2, "period": 0.03},
        **{name: {"period": 0.5} for name in ("bound", "pace", "pronk", "trot", "walk")},
        "Standing": {},
        "WholeBodyOptions": {
            "tunable": ("weights",), "standing": mpc.Standing(), "shift": True,
            "swing_height": 0.1,
            "end": "regulator", "rigid_springs": (),
        },

        "capture_point": {"system": ex.quadruped()},
        "support_margin": {"feet": 3},
        "StepParameters": {},
        "capture_step": {"law": ex.walking_law(), "feet": ("FL", "FR", "RL", "RR")},
        "SwingParameters": {},
        "TouchDown": {},
        "SingleRigidBody": {"mass": 10.0, "inertia": np.eye(3)},
        "single_rigid_body": {"system": ex.quadruped(), "contacts": ex.feet(), "q0": ex.stand()},
        "rigid_body_state": {"system": ex.quadruped()},
        "single_rigid_body_mpc": {
            "body": ex.rigid_body(), "horizon": 2, "Q": [50.0] * 6 + [1.0] * 6, "rho": 1e-6,
        },
        "SingleRigidBodyMPC.reference": {
            "self": ex.rigid_body_mpc(), "slices": {"x": np.zeros(12)},
        },
        "SingleRigidBodyMPC.reference_at": {"self": ex.rigid_body_mpc(), "q": np.zeros(12)},
        "SingleRigidBodyMPC.solve": {
            "self": ex.rigid_body_mpc(), "x0": np.zeros(12), "feet": np.zeros((4, 3)),
        },
        "default_cost": {"system": ex.quadruped(), "contacts": ex.feet(), "q0": ex.stand()},
        "whole_body_mpc": {
            "system": ex.hopper(), "horizon": 1, "period": 0.02, "parts": [mb.Contact("foot")],
            "stepping": mpc.SwingParameters(),
        },
        "task_command": {
            "mpc": ex.whole_body(), "t": 0.0, "walk": np.zeros(3), "references": {},
        },
        "walking_planner": {
            "law": ex.walking_law(), "mpc": ex.rigid_body_mpc(), "gait": gait, "q0": ex.stand(),
            "stepping": mpc.SwingParameters(),
        },
    }  # fmt: skip


def calls_of_interop():
    system, home = {"system": ex.mass()}, "interop."
    ticks = system | {"horizon": 2, "period": 0.1}
    problem = ex.ocp()
    given = {"ocp": problem, "x0": np.zeros(problem.nx), "p": problem.parameters()}
    return {
        home + "continuous_dynamics": system,
        home + "to_acados_model": system | {"model": Fresh(SimpleNamespace)},
        home + "to_do_mpc_model": system | {"model": Fresh(FakeDoMpc)},
        home + "to_opti": ticks | {"q0": [0.0]},
        home + "to_rockit": ticks | {"ocp": Fresh(FakeOcp)},
        home + "ocp_to_opti": given,
        home + "ocp_to_rockit": {"problem": given["ocp"], "x0": given["x0"], "p": given["p"]},
        home + "ocp_to_acados": {"problem": given["ocp"], "x0": given["x0"], "p": given["p"]}
        | {"ocp": Fresh(acados_ocp)},
        home + "ocp_to_crocoddyl": given | {"crocoddyl": FAKE_CROCODDYL},
        home + "ocp_to_aligator": given | {"aligator": FAKE_ALIGATOR},
    }


def calls_of_mpc():
    parts = (calls_of_linear_mpc, calls_of_ocps, calls_of_trajectories, calls_of_walking)
    return {f"mpc.{name}": call for part in parts for name, call in part().items()}
