"""Valid calls of systems, dynamics, simulation, formulations and linear algebra."""

import casadi as ca
import numpy as np

import mbcasadi as mb
from fuzz import examples as ex
from mbcasadi import dynamics, formulation, linalg, simulation
from mbcasadi.dynamics import linear_parameters


def calls_of_systems():
    system, (q, v) = ex.four_bar(), ex.symbols()
    angle, rate = ex.one_symbol()
    state = {"self": system, "q": q, "v": v}
    equations = {"q": angle, "v": rate}
    home = "system."
    calls = {
        "read_mjcf": {"source": ex.FOUR_BAR},
        "from_lagrangian": equations | {"kinetic": rate**2},
        "from_equations": equations | {"M": ca.SX(1), "h": ca.SX(0)},
        "contacts_of": {
            "system": ex.quadruped(),
            "bodies": ["FL_foot"],
            "ground": "floor",
            "geoms": ["FL"],
            "q": ex.stand(),
        },
        "GeometryContact.as_contact": {"self": ex.foot_of_geometry()},
        "redundancy": {"system": system, "q": system.tree.q0},
        "evaluate": {"member": system.mass_matrix, "values": {"q": system.tree.q0}},
        "System.member": {"self": system, "name": "mass_matrix"},
        "System.require_available": {"self": system},
        "System.cached_function": {"self": system, "key": "own", "make": ex.sine},
        "System.frame": {"self": system, "name": "tracer"},
        "System.relative_frame": {"self": system, "name": "tracer", "base": "world"},
        "System.with_frame": {"self": system, "q": q, "name": "own", "position": ca.SX(3, 1)},
        "System.sensor": {"self": ex.sensed(), "name": "felt"},
        "System.subtree": {"self": system, "body": "coupler"},
        "System.rows": state | {"phi": q[0]},
        "System.with_rows": state | {"phi": q[0]},
        "System.with_mask": {"self": system},
        "row_mask": {"system": system, "on": {"pin": 1.0}},
        "System.at": {"self": ex.weighed()},
        "System.numbers_at": {"self": system, "q": q},
        "System.parameter_values": {"self": ex.weighed()},
    }
    return {home + name: arguments for name, arguments in calls.items()}


def calls_of_anatomy():
    robot = mb.describe(ex.quadruped())
    return {
        "anatomy.describe": {"system": ex.quadruped(), "q": ex.stand()},
        "anatomy.RobotDescription.limbs_of": {"self": robot, "role": "leg"},
    }


def calls_of_contacts():
    feet, contacts = ex.quadruped(), [mb.Contact("FL"), mb.Contact("FR")]
    touching = mb.with_contacts(feet, contacts)
    return {
        "contacts.with_contacts": {"system": feet, "contacts": contacts, "q0": ex.stand()},
        "contacts.contact_force_fun": {"system": touching, "contacts": contacts},
    }


def calls_of_dynamics():
    home, system = "dynamics.", {"system": ex.four_bar()}
    names = (
        "actuation_map", "branch_motion", "constrained_inverse_dynamics", "constraint_force",
        "constraint_wrenches", "force_channels", "forward_dynamics",
        "forward_dynamics_derivatives", "inverse_dynamics",
        "inverse_dynamics_derivatives", "linear_parameters", "null_space_inverse_dynamics",
        "null_space_terms", "predicted_readings", "projection_terms", "quasi_velocity_curvature",
        "quasi_velocity_motion", "quasi_velocity_terms", "reference_regressor", "regressor",
        "spring_rests", "tendon_wrenches", "udwadia_kalaba_terms", "virtual_mass_terms",
        "wrench_force",
    )  # fmt: skip
    treatment = dynamics.Treatment(baumgarte=mb.Baumgarte(10.0, 10.0))
    rule = {"self": treatment, "row_scale": 1.0}
    return (
        {home + name: system for name in names}
        | {
            home + name: system | {"treatment": treatment}
            for name in ("constraint_force", "forward_dynamics", "forward_dynamics_derivatives")
        }
        | {home + "Treatment": {"rank_tol": 0.1}, home + "Treatment.rule": rule}
    )


def calls_of_identification():
    system, home = ex.four_bar(), "identification."
    samples = {"system": system, "samples": ex.samples()}
    body = linear_parameters(system, ["body:crank:*"])
    tick, q = 1e-2 * np.arange(50), np.tile(system.tree.q0, (50, 1))
    calls = {
        "Samples": {name: np.zeros((2, 3)) for name in ("q", "v", "a", "f")},
        "base_parameters": {"system": system},
        "closed_samples": samples,
        "filtered_samples": {
            "system": system, "t": tick, "q": q, "u": np.zeros((50, 1)), "cutoff": 20.0,
        },
        "identify": samples,
        "predicted_controls": samples | {"parameters": body, "theta": body.values},
    }  # fmt: skip
    return {home + name: arguments for name, arguments in calls.items()}


def calls_of_simulation():
    system = ex.four_bar().with_mask()
    rest = {"system": system, "q0": system.tree.q0, "v0": np.zeros(3)}
    sampled = simulation.SampledLaw(lambda *_: np.zeros(1), 1e-3)
    events = [
        simulation.Event("up", lambda *_: 1.0, mask=np.ones(3)),
        simulation.Switch("on", 1e-3, np.ones(3)),
    ]
    home = "simulation."
    calls = {
        "assemble": {"system": system, "q0": system.tree.q0},
        "simulate": rest | {"duration": 1e-3, "controller": sampled, "events": events},
        "fixed_step_fun": {"system": system, "step": 1e-3},
        "simulate_fixed_step": rest | {"step": 1e-3, "count": 2, "keep": 1},
        "Trajectory.save_npz": {"self": ex.motion(), "path": ex.folder() / "motion.npz"},
        "Trajectory.save_csv": {"self": ex.motion(), "path": ex.folder() / "motion.csv"},
        "ControlLoop": {"controller": sampled},
        "SampledLaw": {"law": lambda *_: np.zeros(1), "period": 1e-2},
        "Event": {"name": "up", "when": lambda *_: 1.0},
        "Switch": {"name": "off", "time": 1e-3, "mask": np.zeros(3)},
        "EquationOptions": {},
        "InitialConditions": {},
        "IntegrationOptions": {},
    }
    return {home + name: arguments for name, arguments in calls.items()}


def calls_of_formulations():
    M, A, c = ca.SX.sym("M", 3, 3), ca.SX.sym("A", 2, 3), ca.SX.sym("c", 2)
    h, f = ca.SX.sym("h", 3), ca.SX.sym("f", 3)
    motion = {"M": M, "h": h, "f": f, "A": A, "c": c}
    home = "formulation."
    names = (
        "lagrange",
        "limbwise",
        "null_space",
        "projection",
        "quasi_velocity",
        "udwadia_kalaba",
        "virtual_mass",
    )
    return {
        **{home + name: motion for name in names},
        home + "constraint_inertia": {"M": M, "P": ca.SX.sym("P", 3, 3)},
        home + "in_metric": {"equations": formulation.projection, "metric": np.eye(3)},
        home + "length_metric": {"rotational": [True, False, True], "length": 0.3},
        home + "limit_metric": {"force_limits": np.ones(3)},
        home + "metric_projector": {"A": A, "metric": np.eye(3)},
    }


def calls_of_linalg():
    A, M, b = ca.SX.sym("A", 2, 3), ca.SX.sym("M", 3, 3), ca.SX.sym("b", 3)
    basis = linalg.row_basis(A)
    factor, rhs = linalg.complete_factor(A), ca.SX.sym("rhs", 2)
    L = linalg.tree_cholesky(M)
    pattern, square = ca.Sparsity.dense(2, 3), ca.Sparsity.dense(3, 3)
    inv = ca.SX.sym("inv", 3)
    home = "linalg."
    calls = {
        **{name: {"A": A} for name in ("complete_factor", "complete_factor_and_null_basis",
           "null_basis", "pinv", "projector", "rank", "row_basis")},
        **{name: {"pattern": pattern} for name in ("damped_pinv_fun", "null_basis_fun",
           "pinv_fun", "projector_fun", "rank_fun", "row_basis_fun")},
        **{name: {"pattern": square} for name in ("matrix_root_fun", "tree_cholesky_fun",
           "tree_solve_fun")},
        **{name: {"L": L, "b": b} for name in ("tree_solve", "tree_solve_lower",
           "tree_solve_transposed")},
        "bounded_least_norm": {"N": A.T, "lower": -b, "upper": b},
        "complement": {"V": basis.V},
        "complete_factor_scaled": {"A": A, "column_scale": ca.DM.ones(3)},
        "damped_pinv": {"A": A, "damping": 0.1},
        "inverse_diagonal": {"basis": basis},
        "inverse_factor": {"H": M},
        "kind_for": {"operations": 10},
        "limb_factor": {"G": A, "threshold2": rhs},
        "limbs_of": {"pattern": pattern},
        "matrix_root": {"M": M},
        "operations": {"pattern": pattern, "pivot": True},
        "positive_solve": {"A": M, "b": b},
        "positive_solve_fun": {"pattern": square, "rhs_pattern": ca.Sparsity.dense(3, 1)},
        "product": {"A": A, "B": M},
        "root_operations": {"n": 3},
        "solve_kept": {"basis": basis, "b": rhs},
        "solve_upper": {"R": M, "inv_diag": inv, "b": b},
        "solve_upper_transposed": {"R": M, "inv_diag": inv, "b": b},
        "tree_cholesky": {"M": M},
        "weighted_gram": {"E": A, "weight": ca.DM.ones(3), "shift": ca.DM.ones(2)},
        "LimbFactor.shortest": {"self": linalg.limb_factor(A, rhs), "b": rhs},
        "LimbFactor.nearest": {"self": linalg.limb_factor(A, rhs), "y0": b, "c": rhs},
        "CompleteFactor.pinv_times": {"self": factor, "b": rhs},
        "CompleteFactor.pinv_transposed_times": {"self": factor, "b": b},
    }  # fmt: skip
    return {home + name: arguments for name, arguments in calls.items()}
