"""A pose in which the tips of fingers hold a ball: found with the model's own shapes in MuJoCo.

Of a hand, tips lie on the surface of the ball about a common centre c, pressing against each other,

    gap_i(q, c) = 0,   Σ n_i = 0,   φ(q) = 0,   other geoms clear of the ball,

solved by least squares from several starts, for three of its tips at a time. Of a gripper, whose
single actuator moves all joints, the pose is that in which it stops when it closes on the ball.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import mujoco
import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.validation.spec.grasp_scene import CLEAR, FAR, Grasp, Scene, balanced

Array = NDArray[np.float64]
Couplings = Callable[[Array], Array]
"""(q) → (m,), zero where couplings of joints hold."""
TOUCHES = 5e-4
"""M, largest gap of a tip that holds the ball."""
STARTS = 6
"""Poses from which each choice of tips is tried."""
INSIDE = 0.05
"""Share of a joint's range that is left at both ends."""
CLOSING = 2.0
"""S, in which a gripper closes."""
HALVINGS = 5
"""Of the range of the control, to where a gripper just touches the ball."""
OPENING = 0.5
"""Diameter of the ball in a gripper, of its opening."""


def grasp_of_hand(
    scene: Scene, couplings: Couplings | None, sizes: Sequence[float], fingers: int = 3
) -> Iterator[Grasp]:
    """Yield grasps of a hand, as they are found.

    Args:
        scene: the hand and the ball.
        couplings: of its joints; None without.
        sizes: radii, m, in the order in which they are tried.
        fingers: tips that hold.
    """
    rng = np.random.default_rng(0)
    count = min(fingers, len(scene.tips))
    for radius in sizes:
        problems = [
            _Problem(scene, chosen, radius, couplings) for chosen in combinations(scene.tips, count)
        ]
        for _ in range(STARTS):
            for problem in problems:
                x = problem.solved(rng)
                if problem.holds(x):
                    yield problem.grasp(x)


def grasp_of_gripper(scene: Scene, share: float = OPENING) -> Grasp | None:
    """Return where a gripper just stops on a ball; None where closing does not hold it.

    Args:
        scene: the gripper and the ball.
        share: diameter of the ball, of the opening.
    """
    model = scene.model
    far = np.array([*scene.q0[:-7], 0.0, 0.0, -FAR, 1.0, 0.0, 0.0, 0.0])
    ways = [_moved(scene, far, ctrl) for ctrl in model.actuator_ctrlrange[0]]
    widths = {
        pair: [scene.opening(pair, way[-1])[0] for way in ways]
        for pair in combinations(range(len(scene.tips)), 2)
    }
    pair, (first, last) = max(widths.items(), key=lambda x: abs(x[1][0] - x[1][1]))
    widest, shut = max(first, last), int(last < first)
    radius = 0.5 * share * widest
    way = _moved(scene, ways[1 - shut][-1], model.actuator_ctrlrange[0, shut])
    fits = [q for q in way if scene.opening(pair, q)[0] > 2 * radius]
    if abs(first - last) < CLEAR or not fits or len(fits) == len(way):
        return None
    start = fits[-1].copy()
    start[-7:-4] = scene.opening(pair, start)[1]
    scene.resize(radius)
    tips = [scene.tips[k] for k in pair]
    wide, narrow = model.actuator_ctrlrange[0, [1 - shut, shut]]

    def stopped(ctrl: float) -> Grasp | None:
        return _stopped(scene, _moved(scene, start, ctrl)[-1], tips, radius)

    if stopped(narrow) is None:
        return None
    for _ in range(HALVINGS):  # the control at which it just touches
        middle = 0.5 * (wide + narrow)
        wide, narrow = (middle, narrow) if stopped(middle) is None else (wide, middle)
    return stopped(narrow)


def _stopped(scene: Scene, q: Array, tips: Sequence[Array], radius: float) -> Grasp | None:
    """Return the grasp of a pose in which both tips press on the ball; None where they do not."""
    scene.place(q)
    held = [scene.nearest(tip, radius) for tip in tips]
    if max(gap for gap, _, _ in held) > 0 or not balanced([normal for _, normal, _ in held]):
        return None
    return Grasp(radius, q[-7:-4].copy(), q, tuple(scene.name(geom) for _, _, geom in held))


def _moved(scene: Scene, q: Array, ctrl: float) -> list[Array]:
    """Return the configurations on the way to where a control leads, with a ball that floats."""
    model, data = scene.model, scene.data
    mujoco.mj_resetData(model, data)
    data.qpos[:], data.ctrl[:] = q, ctrl
    way = [np.array(q)]
    body = model.geom_bodyid[scene.ball]
    steps = round(CLOSING / model.opt.timestep)
    for _ in range(steps):
        mujoco.mj_forward(model, data)
        data.xfrc_applied[body, :3] = -model.opt.gravity * model.body_mass[body]
        data.qvel[-6:] *= 0.9  # air, in which the ball comes to rest
        mujoco.mj_step(model, data)
        way.append(np.array(data.qpos))
    return way


class _Problem:
    """Least squares of the joints and the centre of a ball, for a choice of tips."""

    def __init__(
        self, scene: Scene, tips: Sequence[Array], radius: float, couplings: Couplings | None
    ) -> None:
        self.scene, self.tips, self.radius, self.couplings = scene, tips, radius, couplings
        held = np.concatenate(tips)
        self.others = np.setdiff1d(scene.solid, held)
        model = scene.model
        moves = {j for tip in tips for j in scene.joints_before(int(tip[0]))}
        self.joints = sorted(moves)
        self.columns = model.jnt_qposadr[self.joints]
        ends = np.array(
            [model.jnt_range[j] if model.jnt_limited[j] else (-np.pi, np.pi) for j in self.joints]
        )
        margin = INSIDE * (ends[:, 1] - ends[:, 0])
        self.lower, self.upper = ends[:, 0] + margin, ends[:, 1] - margin

    def at(self, x: Array) -> Array:
        """Return the configuration (nq,) of unknowns (joints, centre)."""
        q = self.scene.q0.copy()
        q[self.columns] = x[:-3]
        q[-7:] = [*x[-3:], 1.0, 0.0, 0.0, 0.0]
        return q

    def residual(self, x: Array) -> Array:
        """Return what is to vanish, lengths in radii."""
        q = self.at(x)
        self.scene.place(q)
        near = [self.scene.nearest(tip, self.radius) for tip in self.tips]
        clear, _, _ = self.scene.nearest(self.others, self.radius)
        gaps = [10 * gap / self.radius for gap, _, _ in near]
        balance = np.sum([normal for _, normal, _ in near], axis=0)
        middle = (x[:-3] - 0.5 * (self.lower + self.upper)) / (self.upper - self.lower)
        loops = np.zeros(0) if self.couplings is None else self.couplings(q)
        hits = 10 * min(clear - 2 * CLEAR, 0.0) / self.radius
        return np.concatenate([gaps, balance, [hits], 0.05 * middle, 100 * loops])

    def solved(self, rng: np.random.Generator) -> Array:
        """Return the unknowns that are found from one start at random."""
        share = rng.uniform(0.2, 0.8, len(self.lower))
        joints = self.lower + share * (self.upper - self.lower)
        self.scene.place(self.at(np.concatenate([joints, np.zeros(3)])))
        places = [self.scene.data.geom_xpos[tip].mean(axis=0) for tip in self.tips]
        start = np.concatenate([joints, np.mean(places, axis=0)])
        free = np.full(3, np.inf)
        bounds = np.concatenate([self.lower, -free]), np.concatenate([self.upper, free])
        result = scipy.optimize.least_squares(
            self.residual, start, bounds=bounds, max_nfev=60, xtol=1e-6, ftol=1e-6
        )
        return np.asarray(result.x)

    def holds(self, x: Array) -> bool:
        """Return whether the tips touch, press against each other, and nothing else touches."""
        self.residual(x)
        near = [self.scene.nearest(tip, self.radius) for tip in self.tips]
        clear, _, _ = self.scene.nearest(self.others, self.radius)
        touch = max(abs(gap) for gap, _, _ in near)
        fits = touch < TOUCHES and clear > 0 and balanced([n for _, n, _ in near])
        return fits and self.scene.collisions(self.at(x)) <= self.scene.collisions(self.scene.q0)

    def grasp(self, x: Array) -> Grasp:
        """Return the grasp of a solution."""
        q = self.at(x)
        self.scene.place(q)
        tips = [self.scene.nearest(tip, self.radius)[2] for tip in self.tips]
        return Grasp(self.radius, x[-3:].copy(), q, tuple(map(self.scene.name, tips)))
