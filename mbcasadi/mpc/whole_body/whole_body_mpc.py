"""MPC of a whole mechanism with contacts that switch: a plan, and inverse dynamics that follows it.

Every `period` a real-time iteration plans states, controls and contact forces over the horizon; at
its own, shorter period inverse dynamics follows accelerations and forces of the plan, within cones
and limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.contacts.constraints import with_contacts
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.limits.joint_limits import JointLimits
from mbcasadi.control.regulators.equilibrium import equilibrium
from mbcasadi.control.tasks.task import Task
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.integrators.semi_implicit import SemiImplicitStep
from mbcasadi.mpc.integrators.step import require_horizon
from mbcasadi.mpc.legged.footsteps import SwingParameters
from mbcasadi.mpc.legged.from_system import gravity_of, trunk_joint
from mbcasadi.mpc.legged.gait import Gait
from mbcasadi.mpc.legged.walking_planner import ticks_of
from mbcasadi.mpc.ocp.make_problem import ProblemPart, optimal_control_problem
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.solution import initial_guess
from mbcasadi.mpc.rti.controller import STAGEWISE, real_time_iteration
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.mpc.whole_body.default_cost import standing_height
from mbcasadi.mpc.whole_body.defaults import (
    APART_PRICE,
    default_decay,
    default_law,
    default_rows,
    default_stepping,
    with_default_cost,
)
from mbcasadi.mpc.whole_body.end_cost import REGULATOR, WEIGHTS, with_regulator
from mbcasadi.mpc.whole_body.feet_apart import FeetApart
from mbcasadi.mpc.whole_body.felt_contacts import felt_contacts
from mbcasadi.mpc.whole_body.following import Following
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences
from mbcasadi.mpc.whole_body.options import DEFAULT_OPTIONS, WholeBodyOptions
from mbcasadi.mpc.whole_body.plan_functions import planner_fun, references_fun, with_plan
from mbcasadi.mpc.whole_body.standing import WalkTimes
from mbcasadi.shapes import column, require_identifier, require_positive, require_whole
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.coordinates import initial_pose

PLANNED_FRICTION = 0.8
"""Share of the friction of a contact that is planned with; inverse dynamics has the rest."""

EXCESS_DECAY = 1.2
"""Time in which an excess of speed is taken to decay, by √(height of the base / g)."""

TICKS = 10
"""Ticks of inverse dynamics in one of the plan, unless its period is given."""


@final
@summarised
@dataclass(frozen=True)
class WholeBodyMPC:
    """A plan of the whole mechanism, and inverse dynamics that follows it.

    It is the planner of `validation.outer_law(mpc.plan, mpc, command)`, above `mpc.law`.

    Attributes:
        plan: the real-time iteration, with the output `plan`: states x_0 … x_{N-1}, then controls.
            Positions in them are half an interval ahead of rates, see `following.py`.
        law: inverse dynamics at the period of the joints.
        references: (q, v, command, plan, age, t, z) → (first_q, first_v, ref, z_next) once a plan:
            the state with which it begins, predicted from q and v with the plan that acts at t,
            `age` seconds after its first sample, and p of all samples.
        follow: (plan, age, t) → (ref, [mask]) of the law, `age` seconds after the plan's first
            sample.
        planner: (q, v, command, u, age, t, z) → (ref, [mask], outer_q, outer_v, outer_ref, z_next)
            of both at the rate of the law, u the plan that acts.
        u0, z0: the plan to begin with, which stands still at q0, and the first z.
        every: ticks of the law in one of the plan.
        delay: ticks of the plan from its measurement to the moment at which it acts.
        tasks: whose references are the last entries of the command.
        end: what the end of a plan costs: the weights of its cost, or which regulator, or why none.
    """

    plan: RealTimeIteration
    law: InverseDynamicsQP
    references: ca.Function
    follow: ca.Function
    planner: ca.Function
    u0: Array
    z0: Array
    every: int
    delay: int
    tasks: tuple[Task, ...] = ()
    end: str = WEIGHTS

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.plan.controller.name,
            "horizon": self.plan.ocp.horizon,
            "periods": (self.plan.period, self.law.period),
            "delay": self.delay,
            **({} if self.end == WEIGHTS else {"end": self.end}),
        }

    @property
    def speeds(self) -> slice:
        """Entries of the command: speeds along x and y of the base, m/s, and its turn, rad/s."""
        return slice(0, 3)

    @property
    def function(self) -> ca.Function:
        """The planner, as `outer_law` takes it."""
        return self.planner


@checked
def whole_body_mpc(
    system: System,
    horizon: int,
    period: float,
    parts: Sequence[ProblemPart | Contact],
    *,
    gait: Gait | None = None,
    q0: ArrayLike | None = None,
    stepping: SwingParameters | None = None,
    law: InverseDynamicsQP | None = None,
    tasks: Sequence[Task] = (),
    delay: int = 1,
    uneven: bool = False,
    options: WholeBodyOptions = DEFAULT_OPTIONS,
    name: str = "whole_body",
) -> WholeBodyMPC:
    """Return MPC of a robot with a free base, and the inverse dynamics that follows its plan.

    Args:
        system: with one free joint.
        horizon: number of intervals N.
        period: length of one, s, of the first where they grow, and the time between two plans.
        parts: contacts, which are the feet, and parts of an optimal control problem. Without a cost
            among them, those of `default_cost`. Cones are planned with 0.8 of the friction, soft at
            a price (`CONE_PENALTY`).
        gait: of the contacts; all stand by default.
        q0: (nq,) pose in which the robot stands, or near one: springs deflect and loops close as
            in the nearest `equilibrium`. The model's own by default.
        stepping: of the swing; by default in proportion to the height of the base over the feet,
            and lower where legs are heavy and swings short.
        law: a law with a reference of contact forces, whose tasks are `PostureTask` or `FrameTask`
            in the world; by default posture and base, at a tenth of the period, with the joint
            limits among the parts, an observer and the `tasks`. Plans know the force that its
            observer learns.
        tasks: of hands, for example, with gains and weights as in inverse dynamics: beside all
            other costs of the plan. Their references of every sample are the last entries of the
            command, see `task_command`. A `law` of yours has to have them too.
        delay: plan ticks from a measurement to the moment at which the plan acts.
        uneven: the command has, behind speeds and turn, the height of the ground on which each foot
            lands next, over the plane on which it stands at q0, m: (3 + nc,). Otherwise the ground
            is where feet stand, or stood last.
        options: see `WholeBodyOptions`.
        name: a C identifier.

    Raises:
        ProblemError: not one free joint, no contacts, a pose in which the robot cannot stand, a
            gait of other feet, a law of other contacts or periods.
        ShapeError: a wrong shape of q0.
    """
    require_identifier("name", name)
    require_positive(period=period)
    require_whole(0, delay=delay)
    contacts = tuple(part for part in parts if isinstance(part, Contact))
    own = [part for part in parts if not isinstance(part, Contact)]
    trunk_joint(system)
    start = column("q0", initial_pose(system) if q0 is None else q0, system.nq)
    height = standing_height(system, contacts, start)
    limits = next((part for part in own if isinstance(part, JointLimits)), None)
    time = float(np.sqrt(height / np.linalg.norm(gravity_of(system))))
    inner = law
    if inner is None:
        tunable, springs = options.tunable, options.rigid_springs
        inner = default_law(system, contacts, period / TICKS, time, limits, tunable, tasks, springs)
    every = ticks_of(period, inner.period)
    _require_contacts(contacts, gait, inner)
    rest = equilibrium(system, start, contacts=contacts, friction=True)
    pose = rest.q
    planned = [replace(c, friction=PLANNED_FRICTION * c.friction) for c in contacts]
    touching = with_contacts(system, planned, pose).with_mask()
    standing = None if gait is None else options.standing
    own += [] if standing is None else [WalkTimes()]
    own += [] if gait is None else [FeetApart(planned, pose, APART_PRICE / height)]
    step = SemiImplicitStep(decay=default_decay(touching, planned))
    rows = default_rows(system, planned, own, height, period, impacts=options.impacts)

    def problem(costs: Sequence[ProblemPart]) -> OptimalControlProblem:
        """Return the problem with these costs."""
        lengths = _lengths(require_horizon(horizon), period, options.growth)
        return optimal_control_problem(
            touching,
            horizon,
            lengths,
            [*costs, *rows, *tasks],
            step=step,
            tunable=options.tunable,
            name=name,
        )

    costs, end = with_default_cost(system, contacts, pose, own), options.end
    ocp = problem(costs)
    stand = Gait(1.0, 1.0, (0.0,) * len(contacts)) if gait is None else gait
    swing = stepping
    if swing is None:
        swing = default_stepping(system, contacts, pose, stand, height)
    if options.swing_height is not None:
        swing = replace(swing, height=options.swing_height)
    touch = None if gait is None else options.touch_down or swing.touch_down
    rule = None if touch is None else felt_contacts(touch, system, contacts, height)
    refs = HorizonReferences(
        ocp,
        touching,
        contacts,
        stand,
        swing,
        pose,
        int(delay),
        EXCESS_DECAY * time,
        uneven,
        standing,
        rule,
        options.shift,
    )
    if end == REGULATOR:
        costs, end = with_regulator(
            costs, refs, rest.u, walks=gait is not None, springs=inner.rigid_springs
        )
        ocp = problem(costs)
        refs = replace(refs, ocp=ocp)
    X, U = _at_rest(ocp, pose, rest.u)
    guess = initial_guess(ocp, X, U)
    iteration = real_time_iteration(
        ocp, guess, solver=STAGEWISE, line_search=options.line_search, name=f"{name}_plan"
    )
    lengths = np.zeros(0) if ocp.lengths is None else ocp.lengths
    stands = standing is not None
    stood = np.ones(0 if rule is None else len(contacts) * ocp.horizon)
    following = Following(inner, ocp, touching, contacts, gait, step, int(delay), stands, rule)
    references = references_fun(f"{name}_references", refs, following, tasks)
    follow = following.function(f"{name}_follow")
    return WholeBodyMPC(
        plan=with_plan(iteration, touching, () if rule is None else contacts),
        law=inner,
        references=references,
        follow=follow,
        planner=planner_fun(f"{name}_planner", references, follow, (period, inner.period)),
        u0=np.concatenate(
            [X[:-1].ravel(), U.ravel(), lengths, np.zeros(system.nv + 2 * stands), stood]
        ),
        z0=refs.z0,
        every=every,
        delay=int(delay),
        tasks=tuple(tasks),
        end=end,
    )


def _lengths(horizon: int, period: float, growth: float | None) -> float | list[float]:
    """Return the period, or lengths of intervals that grow from it."""
    if growth is None:
        return period
    lengths: list[float] = (period * growth ** np.arange(horizon)).tolist()
    return lengths


def _require_contacts(
    contacts: Sequence[Contact], gait: Gait | None, law: InverseDynamicsQP
) -> None:
    """Raise `ProblemError` unless gait and law are of these contacts."""
    if gait is not None and len(gait.offsets) != len(contacts):
        raise ProblemError(
            f"{len(contacts)} contacts and {len(gait.offsets)} offsets of the gait; expected the "
            "same number"
        )
    names, of_law = ([contact.frame for contact in each] for each in (contacts, law.contacts))
    if of_law != names:
        raise ProblemError(
            f"the law has the contacts {of_law}; expected those of the plan, {names}"
        )


def _at_rest(ocp: OptimalControlProblem, q0: Array, u: Array) -> tuple[Array, Array]:
    """Return states (N + 1, nx) and controls (N, nu) of a robot that stands."""
    x = np.concatenate([q0, np.zeros(ocp.nx - q0.size)])
    if ocp.has_rates:
        x[-u.size :] = u
    return np.tile(x, (ocp.horizon + 1, 1)), np.tile(u, (ocp.horizon, 1))
