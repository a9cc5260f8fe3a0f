"""The five papers: their checks in the order of the text, and what frames them on the page."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

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


def in_order(modules: tuple[ModuleType, ...], names: str) -> tuple[Callable[[], Any], ...]:
    """Return the checks with these names, from any of the modules."""
    known = {name: check for module in modules for name, check in vars(module).items()}
    return tuple(known[name] for name in names.split())


A05 = Paper(
    tag="A05",
    subject="projection",
    source=(
        "F. Aghili, *Control and Simulation of Motion of Constrained Multibody Systems Based "
        "on Projection Matrix Formulation*"
    ),
    checks=in_order(
        (a05, a05_motion),
        "weighted_jacobian projector_rate drifted_motion third_inertia direct_dynamics "
        "additional_products particle projection_after_steps quadratic_convergence "
        "force_control sampled_force_loop smallest_singular_value singular_poses link_masses "
        "branches multipliers independent_coordinates",
    ),
    confirms=in_order(
        (a05_right, a05_right_motion),
        "projectors acceleration_parts projected_dynamics constraint_inertias "
        "singular_inertia constraint_force circle newton motion_control weighted_norm "
        "continuous_force_loop passive_joints controllability crank lagrange_acceleration",
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
    checks=in_order(
        (a10, a10_control),
        "skew_coriolis change_of_variables slope_of_reduced rotation_term "
        "two_reduced_matrices left_inverse composite_error decay_rate position_bound "
        "force_norm trajectory",
    ),
    confirms=in_order(
        (a10_right,),
        "free_motion rotated no_work entries constrained_motion independent_coordinates "
        "tracking_law force_law",
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
    checks=in_order(
        (a16,),
        "power_of_inputs combination enough_actuators redundant_actuators oblique_direction "
        "switching_gain angular_rate acceleration normal_force inertia_rank",
    ),
    confirms=in_order(
        (a16_right,),
        "rates regularised_inverse model skew_property spectrum force_map oblique_force",
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
    checks=in_order(
        (l15, l15_motion),
        "constraint_equation feeling_reaction total_rate free_vectors controllability "
        "free_control_size stabilisation spring_inertia gap_drift column_sizes first_link "
        "angular_velocity desired_motion least_norm free_indices",
    ),
    confirms=in_order(
        (l15_right,), "udwadia_kalaba weighted_rows two_masses closed_forms rows motors"
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
    checks=in_order(
        (s20,), "multiplier_matrix state_in_basis reduction triangular_factor data_condition"
    ),
    confirms=in_order((s20,), "kkt_form pseudo_inverse split_equations"),
    read=s20.READ,
)

PAPERS = (A05, A10, A16, L15, S20)
