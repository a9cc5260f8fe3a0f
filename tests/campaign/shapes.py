"""Gaps of convex shapes against Clarabel where they are apart, and over directions where not.

    python -m campaign.shapes --pairs 10000

Pairs of sphere, capsule, ellipsoid, cylinder, box and mesh (its points with balls, without
`mj_geomDistance`), three of ten with parallel axes, are placed
up to their size apart (every second one up to a thousandth), and overlapping by up to a twentieth;
the size of a pair is the smaller radius. `mj_geomDistance` is judged beside ours.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache

import casadi as ca
import mujoco
import numpy as np

from campaign.convex_shapes import Shape, depth, distance, draw_shapes
from campaign.mechanics import Array
from campaign.run import SEED
from mbcasadi.description import Geom
from mbcasadi.model import geometry
from mbcasadi.model.geometry import Placed

APART = 1e-6  # of the size
SHALLOW = 0.01  # of the depth
DEEPEST = 0.05  # of the size
FAR = 100.0  # m


@dataclass
class Tally:
    """What was found."""

    pairs: int = 0
    apart: float = 0.0
    overlapping: float = 0.0
    wrong: list[str] = field(default_factory=list)
    mujoco_wrong: Counter[str] = field(default_factory=Counter)


def our_gap(a: Shape, b: Shape) -> tuple[float, Array]:
    """Return the gap and normal of two shapes."""
    shapes = []
    for shape in (a, b):
        geom = Geom(
            "",
            shape.kind,
            0,
            np.zeros(3),
            np.zeros(4),
            shape.size,
            np.zeros(3),
            points=shape.points,
        )
        shapes.append(Placed(geom, ca.SX(shape.p), ca.SX(shape.R)))
    if (a.kind, b.kind) in geometry.PAIRS:
        witness = geometry.round_witness(*shapes)
    else:
        witness = geometry.convex_witness(*shapes, 0.0)
    gap, normal = (np.array(ca.evalf(x)).ravel() for x in (witness.gap, witness.normal))
    return float(gap[0]), normal


@cache
def pair_in_mujoco(kinds: tuple[str, str]) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a model of two geoms that are placed later."""
    geoms = "".join(
        f'<body mocap="true"><geom type="{kind}" size="1 1 1"/></body>' for kind in kinds
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    return model, mujoco.MjData(model)


def gap_of_mujoco(a: Shape, b: Shape) -> float:
    """Return MuJoCo's distance."""
    if "mesh" in (a.kind, b.kind):
        return np.nan  # its meshes have other poses and no balls: judged in tests/system
    model, data = pair_in_mujoco((a.kind, b.kind))
    for i, shape in enumerate((a, b)):
        model.geom_size[i] = shape.size
        model.geom_rbound[i] = shape.radius
        data.geom_xpos[i], data.geom_xmat[i] = shape.p, shape.R.ravel()
    return float(mujoco.mj_geomDistance(model, data, 0, 1, FAR, np.zeros(6)))


def moved(shape: Shape, by: Array) -> Shape:
    """Return the shape at another place."""
    return replace(shape, p=shape.p + by)


def judge(a: Shape, b: Shape, tally: Tally, name: str) -> None:
    """Compare one pair."""
    size, (ours, _) = min(a.radius, b.radius), our_gap(a, b)
    theirs, kinds = gap_of_mujoco(a, b), f"{a.kind}-{b.kind}"
    tally.pairs += 1
    reference = distance(a, b)
    if reference > APART * size:
        error = abs(ours - reference) / size
        tally.apart = max(tally.apart, error)
        right = error <= APART
        right_there = abs(theirs - reference) / size <= APART
    else:
        reference = -depth(a, b)
        error = abs(ours - reference) / max(abs(reference), APART * size)
        tally.overlapping = max(tally.overlapping, error)
        right = ours < APART * size and error <= SHALLOW
        right_there = abs(theirs - reference) <= max(SHALLOW * abs(reference), APART * size)
    if not right:
        tally.wrong.append(
            f"{name} {kinds}: gap {ours:.9g}, expected {reference:.9g}, size {size:.3g}"
        )
    if not right_there and np.isfinite(theirs):
        tally.mujoco_wrong[f"{kinds}{' overlapping' if reference < 0 else ''}"] += 1


def judge_number(number: int, tally: Tally) -> None:
    """Judge pair `number` apart and overlapping."""
    rng = np.random.default_rng((SEED, number))
    a, b = draw_shapes(rng)
    size = min(a.radius, b.radius)
    gap, normal = our_gap(a, b)
    farthest = size if number % 2 else size / 1000
    away = farthest * (1 - rng.uniform())
    judge(a, moved(b, (away - gap) * normal), tally, f"{number} apart")
    inside = DEEPEST * size * (1 - rng.uniform())
    judge(a, moved(b, (-inside - gap) * normal), tally, f"{number} overlapping")


def main() -> int:
    """Run the campaign; 1 where a gap is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    tally = Tally()
    for number in range(parser.parse_args().pairs):
        judge_number(number, tally)
    print(f"{tally.pairs} gaps, worst error apart {tally.apart:.2g} of the size, ", end="")
    print(f"overlapping {tally.overlapping:.2g} of the depth")
    print(
        f"mj_geomDistance is off in {sum(tally.mujoco_wrong.values())}: {dict(tally.mujoco_wrong)}"
    )
    print("\n".join(tally.wrong) or "none wrong")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
