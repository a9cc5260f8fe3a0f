"""One rigid body carried by feet: its equations, and its interval of a stagewise problem.

    x = (rpy, p, ω, v) in the world,  f = (f_1, .., f_nf) the feet's forces,  R = R_z(yaw)
    d/dt rpy = Rᵀ ω,   d/dt p = v,   α = J⁻¹ Σ r_i × f_i,   a = Σ f_i / m + g,   J = R I Rᵀ

g is the gravity of the model, which leans where the ground is a slope. The equations are
linear where roll and pitch are small and yaw and the arms r_i = foot_i - p keep their measured
values [J. Di Carlo et al., IROS 2018]. The hold is exact, because forces act on speeds and these
on the pose: `x_next = A x + S (G f + γ)`, `A = I + T F`, `S = (T I + T²/2 F) [0; I]`.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.contacts.friction_cone import force_rows
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.lq.interval import Interval
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]

NX, WRENCH = 12, 6
GRAVITY = (0.0, 0.0, -9.81)  # m/s²
ROWS = 5  # of one foot: four sides of the pyramid, and the normal force


@readable_fields
@summarised
@dataclass(frozen=True)
class SingleRigidBody:
    """The robot as one rigid body.

    Attributes:
        mass: kg.
        inertia: (3, 3) about the centre of mass, in the trunk's axes, kg m².
        feet: number of feet.
        friction: μ.
        f_min, f_max: normal force of a foot on the ground, N.
        gravity: (3,) in axes whose z is normal to the ground, m/s².

    Raises:
        ProblemError: gravity does not press the feet on the ground.
    """

    mass: float
    inertia: Array
    feet: int = 4
    friction: float = 0.6
    f_min: float = 5.0
    f_max: float = 500.0
    gravity: tuple[float, float, float] = GRAVITY

    def __post_init__(self) -> None:
        require_fields(self)
        if np.shape(self.gravity) != (3,) or not np.all(np.isfinite(self.gravity)):
            raise ProblemError(f"gravity = {self.gravity}; expected three numbers, m/s²")
        if not self.gravity[2] < 0:
            raise ProblemError(
                f"gravity = {self.gravity}; expected a negative z: it presses the feet on the "
                "ground, whose normal is z"
            )

    @property
    def weight(self) -> float:
        """N."""
        return float(self.mass * np.linalg.norm(self.gravity))

    @property
    def standing_force(self) -> Array:
        """(3,) force of the ground that carries the weight, within the pyramid of friction, N."""
        x, y, z = -self.mass * np.array(self.gravity)
        return np.array([*np.clip([x, y], -self.friction * z, self.friction * z), z])


def interval(
    body: SingleRigidBody, Q: Array, rho: float, period: float, kind: type[Sym]
) -> Interval[Sym]:
    """Return an interval with the data (turn, G, r), its rows those of all feet.

    Args:
        body: the robot.
        Q: (12, 12) weight of the state about r.
        rho: weight of forces, 1/N².
        period: sample time, s.
        kind: of the expressions.
    """
    nf, rows = 3 * body.feet, ROWS * body.feet
    turn, G, r = kind.sym("turn", 2), kind.sym("G", WRENCH * nf), kind.sym("r", NX)
    A, S = transition(turn, period)
    return Interval(
        data=(turn, G, r),
        A=A,
        B=ca.reshape(G, WRENCH, nf),
        E=S,
        d=S @ ca.DM([0, 0, 0, *body.gravity]),
        Q=kind(ca.DM(Q)),
        S=kind(NX, nf),
        R=rho * kind.eye(nf),
        q=-ca.DM(Q) @ r,
        r=kind(nf, 1),
        G_x=kind(rows, NX),
        G_u=kind(foot_rows(body)[0]),
        g=kind(rows, 1),
    )


def transition(turn: Sym, period: float) -> tuple[Sym, Sym]:
    """Return A (12, 12) and S (12, 6) of one sample; S takes (α, a)."""
    (c, s), kind = ca.vertsplit(turn), type(turn)
    F = kind(NX, NX)
    F[0, 6], F[0, 7], F[1, 6], F[1, 7], F[2, 8] = c, s, -s, c, 1
    for i in range(3):
        F[3 + i, 9 + i] = 1
    hold = period * kind.eye(NX) + period**2 / 2 * F
    return kind.eye(NX) + period * F, hold[:, NX - WRENCH :]


def next_state(body: SingleRigidBody, period: float) -> ca.Function:
    """Return (x, feet, f) → (x_next): forces f (3 feet,) are held for one period."""
    nf = 3 * body.feet
    x, feet, f = ca.SX.sym("x", NX), ca.SX.sym("feet", nf), ca.SX.sym("f", nf)
    turn, G = geometry(body).call([x, feet])
    A, S = transition(turn, period)
    acceleration = G @ f + ca.DM([0, 0, 0, *body.gravity])
    inputs = [x, feet, f]
    return ca.Function(
        "next_state", inputs, [A @ x + S @ acceleration], ["x", "feet", "f"], ["x_next"]
    )


def foot_rows(body: SingleRigidBody) -> tuple[ca.DM, Array]:
    """Return (5 feet, 3 feet) rows `±f_x - μ f_z`, `±f_y - μ f_z`, `f_z`, and their ends."""
    foot = Contact("foot", friction=body.friction, sides=4, max_force=body.f_max)
    D, ends = force_rows(replace(foot, min_force=body.f_min), outer=True)
    rows = np.kron(np.eye(body.feet), D[:, [1, 2, 0]])  # the normal is z
    return ca.sparsify(ca.DM(rows)), np.tile(ends, (body.feet, 1))


def geometry(body: SingleRigidBody) -> ca.Function:
    """Return (x0, feet) → (turn, G): (cos, sin) of yaw, and (α, a) = G f."""
    x0, feet = ca.SX.sym("x0", NX), ca.SX.sym("feet", 3 * body.feet)
    c, s = ca.cos(x0[2]), ca.sin(x0[2])
    R = ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    J_inv = R @ ca.DM(np.linalg.inv(body.inertia)) @ R.T
    arms = [foot - x0[3:6] for foot in ca.vertsplit(feet, 3)]
    top = ca.horzcat(*(J_inv @ ca.skew(arm) for arm in arms))
    G = ca.vertcat(top, ca.repmat(ca.SX.eye(3) / body.mass, 1, body.feet))
    return ca.Function("geometry", [x0, feet], [ca.vertcat(c, s), ca.densify(G)], {"cse": True})
