"""The five papers: their checks in the order of the text, and what frames them on the page."""

from collections.abc import Callable
from dataclasses import dataclass

from . import (
    a05,
    a05_motion,
    a05_right,
    a05_right_motion,
    a10,
    a10_control,
    a10_right,
    a16,
    a16_right,
    l15,
    l15_motion,
    l15_right,
    s20,
)
from .coordinated import control_table
from .finding import Check, Confirm


@dataclass(frozen=True)
class Paper:
    """One source: its checks, the equations that were only read, and what frames its tables."""

    tag: str
    subject: str
    source: str
    checks: tuple[Check, ...]
    confirms: tuple[Confirm, ...]
    read: str
    remark: str = ""
    figures: Callable[[], str] | None = None


A05 = Paper(
    tag="A05",
    subject="projection",
    source=(
        "F. Aghili, *Control and Simulation of Motion of Constrained Multibody Systems Based "
        "on Projection Matrix Formulation*"
    ),
    checks=(
        a05.weighted_jacobian,
        a05.projector_rate,
        a05.drifted_motion,
        a05.third_inertia,
        a05.direct_dynamics,
        a05.additional_products,
        a05_motion.particle,
        a05_motion.projection_after_steps,
        a05_motion.quadratic_convergence,
        a05.force_control,
        a05_motion.sampled_force_loop,
        a05.smallest_singular_value,
        a05_motion.singular_poses,
        a05_motion.link_masses,
        a05_motion.branches,
        a05.multipliers,
        a05_motion.independent_coordinates,
    ),
    confirms=(
        a05_right.projectors,
        a05_right.acceleration_parts,
        a05_right.projected_dynamics,
        a05_right.constraint_inertias,
        a05_right.singular_inertia,
        a05_right.constraint_force,
        a05_right_motion.circle,
        a05_right_motion.newton,
        a05_right.motion_control,
        a05_right.weighted_norm,
        a05_right_motion.continuous_force_loop,
        a05_right_motion.passive_joints,
        a05_right_motion.controllability,
        a05_right_motion.crank,
        a05_right.lagrange_acceleration,
    ),
    read=a05_right.READ,
    remark=(
        "The constraint inertias `M_c` and `M'_c` need a positive definite `M`. `M''_c`, and "
        "`M̄` of A16, only need `M` to be positive definite on null(A). A05 writes C for `Ṗ`."
    ),
)

A10 = Paper(
    tag="A10",
    subject="quasi-velocities",
    source=(
        "F. Aghili, *Modeling and Control of Mechanical Systems in Terms of Quasi-Velocities*, "
        "IntechOpen"
    ),
    checks=(
        a10.skew_coriolis,
        a10.change_of_variables,
        a10.slope_of_reduced,
        a10.rotation_term,
        a10.two_reduced_matrices,
        a10.left_inverse,
        a10_control.composite_error,
        a10_control.decay_rate,
        a10_control.position_bound,
        a10.force_norm,
        a10_control.trajectory,
    ),
    confirms=(
        a10_right.free_motion,
        a10_right.rotated,
        a10_right.no_work,
        a10_right.entries,
        a10_right.constrained_motion,
        a10_right.independent_coordinates,
        a10_right.tracking_law,
        a10_right.force_law,
    ),
    read=a10_right.READ,
    remark=(
        "The quasi-velocity that A10 writes v is `w = Wᵀ v` here, its reduced form `w_r = V2ᵀ "
        "w`; `V2` is a basis of null(A W⁻ᵀ), `W_r = W V2`."
    ),
)

A16 = Paper(
    tag="A16",
    subject="non-minimal model, switching topology",
    source=("F. Aghili, *Non-Minimal Systems with Switching Topology: Dynamics and Controls*"),
    checks=(
        a16.power_of_inputs,
        a16.combination,
        a16.enough_actuators,
        a16.redundant_actuators,
        a16.oblique_direction,
        a16.switching_gain,
        a16.angular_rate,
        a16.acceleration,
        a16.normal_force,
        a16.inertia_rank,
    ),
    confirms=(
        a16_right.rates,
        a16_right.regularised_inverse,
        a16_right.model,
        a16_right.skew_property,
        a16_right.spectrum,
        a16_right.force_map,
        a16_right.oblique_force,
    ),
    read=a16_right.READ,
    remark=(
        "`Λ = -A⁺ Ȧ`, `Ω = Λ - Λᵀ`, `N` is null(A), `f_g` gravity, `B` the actuation, `R` and "
        "`S` the two oblique projections."
    ),
)

L15 = Paper(
    tag="L15",
    subject="Udwadia-Kalaba, servo constraints",
    source=(
        "X. Liu et al., *A systematic approach for designing analytical dynamics and servo "
        "control of constrained mechanical systems*, IEEE/CAA Journal of Automatica Sinica "
        "2(4), 2015"
    ),
    checks=(
        l15.constraint_equation,
        l15.feeling_reaction,
        l15.total_rate,
        l15.free_vectors,
        l15.controllability,
        l15.free_control_size,
        l15_motion.stabilisation,
        l15_motion.spring_inertia,
        l15_motion.gap_drift,
        l15.column_sizes,
        l15.first_link,
        l15.angular_velocity,
        l15_motion.desired_motion,
        l15.least_norm,
        l15.free_indices,
    ),
    confirms=(
        l15_right.udwadia_kalaba,
        l15_right.weighted_rows,
        l15_right.two_masses,
        l15_right.closed_forms,
        l15_right.rows,
        l15_right.motors,
    ),
    read=l15_right.READ,
    remark=(
        "Two controls of the two robots let the reaction `Qᶜ` feel the motors. The paper's "
        "figures come from `u = (A_s M⁻¹ B)⁺ (b_s - A_s M⁻¹ (Q + Qᶜ(Q + B u)))`, linear in "
        "`u`; the minimum norm from the formula below. Ranges over one period in N m, masses, "
        "inertias and lengths one, base distance 3:"
    ),
    figures=control_table,
)

S20 = Paper(
    tag="S20",
    subject="lecture 12",
    source=(
        "S. Savin, *Dynamical systems with constraints*, lecture 12 of a course on "
        "computational intelligence, 2020"
    ),
    checks=(
        s20.multiplier_matrix,
        s20.state_in_basis,
        s20.reduction,
        s20.triangular_factor,
        s20.data_condition,
    ),
    confirms=(s20.kkt_form, s20.pseudo_inverse, s20.split_equations),
    read=s20.READ,
)

PAPERS = (A05, A10, A16, L15, S20)
