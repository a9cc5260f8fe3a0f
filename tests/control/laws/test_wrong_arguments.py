"""Every argument of every law, given what it is not: one exception of ours that names it."""

import inspect

import casadi as ca
import numpy as np
import pytest
from fuzz.table import arguments_of
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control import PostureTask, laws

FIVE_BAR = mb.read_mjcf(models.path("five_bar"))
Q, V = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
Q0 = FIVE_BAR.tree.q0
JOINTS = ("left_proximal", "right_proximal")
THETA, TASK = laws.joint_coordinates(FIVE_BAR, JOINTS), PostureTask()
LAW = laws.computed_torque(FIVE_BAR, TASK)
SERVO = laws.servo_rows(FIVE_BAR, Q, V, phi=Q[0] - 0.1)
LINEAR = mb.linearize(FIVE_BAR, mb.equilibrium(FIVE_BAR))
WRONG = (
    "x",
    FIVE_BAR,
    LINEAR,
    LAW,
    object(),
    float("nan"),
    -1.0,
    [1.0, "a"],
    [None],
    [[1.0, 2.0], [3.0]],
    np.zeros((2, 2, 2)),
    THETA,
    TASK,
    ca.SX.sym("z"),
)
PUBLIC = {name for name in laws.__all__ if inspect.isfunction(getattr(laws, name))} - {"make_law"}
FITS = (  # what is a right value after all, by the names of arguments
    ("x", ("name",)),
    (FIVE_BAR, ("system",)),
    (LAW, ("law",)),
    (TASK, ("task", "closeness")),
    (THETA, ("coordinates",)),
    (-1.0, ("phi", "psi", "t")),  # a number is a row, if a useless one; time has no sign
)
ANYTHING = {"allow_free"}  # a truth value


def fits(argument, value):
    symbol_of_time = argument == "y" and isinstance(value, ca.SX)
    right = any(value is each and argument in names for each, names in FITS)
    return right or symbol_of_time or argument in ANYTHING


@pytest.mark.parametrize("name", sorted(PUBLIC))
@pytest.mark.every(3)
def test_a_wrong_argument_is_refused_by_an_exception_of_ours(name):
    build, right = getattr(laws, name), arguments_of(f"control.laws.{name}")
    build(**right)
    for argument, parameter in inspect.signature(build).parameters.items():
        optional = "None" in str(parameter.annotation) or parameter.default == ()
        for value in (*WRONG, *(() if optional or argument in ANYTHING else (None,))):
            if fits(argument, value):
                continue
            try:
                build(**(right | {argument: value}))
            except err.MbcasadiError:
                continue
            pytest.fail(f"{name}: {argument}={value!r} is accepted")


def test_the_message_says_what_was_found_and_what_is_expected():
    cases = {
        "system is 'five_bar.xml'; expected a System: read_mjcf": lambda: laws.computed_torque(
            "five_bar.xml", TASK
        ),
        "task is None; expected a Task: PostureTask": lambda: laws.computed_torque(FIVE_BAR, None),
        "gains is 0.5; expected a ForceGains": lambda: laws.constraint_force_control(FIVE_BAR, 0.5),
        "baumgarte is 5.0; expected a Baumgarte": lambda: laws.servo_control(
            FIVE_BAR, SERVO, baumgarte=5.0
        ),
        "closeness is 'tool'; expected a Task": lambda: laws.within_limits(LAW, closeness="tool"),
        "count = 0; expected a finite, positive": lambda: laws.sampled_poses(FIVE_BAR, 0),
        "damping = -1.0; expected": lambda: laws.computed_torque(FIVE_BAR, TASK, damping=-1.0),
        "rank_tol = nan; expected a number": lambda: laws.servo_control(
            FIVE_BAR, SERVO, options=laws.LawOptions(rank_tol=float("nan"))
        ),
        "law is a Linearization; expected a Law": lambda: laws.within_limits(LINEAR),
        "rows is 'pin.2'; expected a list of names": lambda: laws.ForceGains(rows="pin.2"),
    }
    for message, build in cases.items():
        with pytest.raises(err.ProblemError, match=message):
            build()


COORDINATE_LAWS = (
    laws.passive_joint_control,
    laws.hybrid_motion_force_control,
    laws.quasi_velocity_tracking,
    laws.quasi_velocity_force,
)


@pytest.mark.parametrize("build", COORDINATE_LAWS)
def test_coordinates_that_do_not_fit_the_motions_are_refused(build):
    one = laws.joint_coordinates(FIVE_BAR, JOINTS[:1])
    with pytest.raises(err.ProblemError, match=r"left_proximal.*determines 1 of the 2 motions"):
        build(FIVE_BAR, one)
    every = laws.joint_coordinates(FIVE_BAR, [joint.name for joint in FIVE_BAR.tree.joints])
    with pytest.raises(err.ProblemError, match="4 entries, of which 2 are independent"):
        build(FIVE_BAR, every)
    twice = ca.Function("theta", [Q], [ca.vertcat(Q[0], 2 * Q[0] + 1)])
    with pytest.raises(err.ProblemError, match="2 entries, of which 1 are independent"):
        build(FIVE_BAR, laws.function_coordinates(FIVE_BAR, twice))
    with pytest.raises(err.ProblemError, match="names left_proximal more than once"):
        laws.joint_coordinates(FIVE_BAR, JOINTS[:1] * 2)
    other = mb.read_mjcf(models.path("planar_3rrr"))
    refused(err.ProblemError, r"of a system with nq = 4.*has nq = 9", lambda: build(other, THETA))
    damped = {"allow_free": True} if "quasi" in build.__name__ else {"damping": 1.0}
    build(FIVE_BAR, one, **damped)


def test_coordinates_of_a_system_from_equations_are_checked_as_well():
    """Its poses are sought; where a mask frees motions, θ may be for those."""
    phi = ca.vertcat(ca.sumsqr(Q[:2]) - 1, Q[2] - Q[0])
    system = mb.from_equations(Q, V, M=np.eye(4), h=np.zeros(4), B=np.eye(4), phi=phi)
    three = laws.function_coordinates(system, ca.Function("theta", [Q], [Q[[0, 2, 3]]]))
    with pytest.raises(err.ProblemError, match="3 entries, of which 2 are independent"):
        laws.quasi_velocity_tracking(system, three)
    laws.quasi_velocity_tracking(system.with_mask(), three)
    two = laws.function_coordinates(system, ca.Function("theta", [Q], [Q[[0, 3]]]))
    laws.quasi_velocity_tracking(system, two)
