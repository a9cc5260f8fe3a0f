"""Equality constraints of a compiled model.

Layout of `eq_data`, as MuJoCo's compiler leaves it:

- connect: anchor in body 1, anchor in body 2;
- weld: anchor in body 2, anchor in body 1, relative quaternion, torque scale;
- joint, tendon: the five coefficients of the polynomial.

Two sites instead of two bodies: the sites themselves are anchors and orientations.
"""

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import (
    Connect,
    CoverageItem,
    Equality,
    JointCoupling,
    TendonCoupling,
    Weld,
)
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.load import capture_warnings
from mbcasadi.mjcf.names import names, object_names

Array = NDArray[np.float64]
Poly = tuple[float, float, float, float, float]

CONSTRAINT_MEMBERS = (
    "constraint",
    "constraint_jacobian",
    "constraint_bias",
    "loop_jacobian",
    "loop_bias",
)
TORQUE_SCALE = 10  # index in eq_data
NO_OBJECT = -1


class End(NamedTuple):
    """One side of a connect or weld: a frame on a body."""

    body: int
    pos: Array
    quat: Array


def equalities(
    model: mujoco.MjModel, flags: Flags
) -> tuple[tuple[Equality, ...], tuple[CoverageItem, ...]]:
    """Return the constraints that have equations, in MuJoCo's order, and refusals of the others.

    Constraints that the file or a flag switches off are kept with `active=False`.
    """
    constraints: list[Equality] = []
    refusals: list[CoverageItem] = []
    for i, name in enumerate(names(model, "equality")):
        active = bool(model.eq_active0[i]) and flags.equality
        equality = _equality(model, i, name, active)
        if equality is not None:
            constraints.append(equality)
        elif active:
            refusals += _refusals(model, i, name)
    return tuple(constraints), tuple(refusals)


def rows_without_equations(model: mujoco.MjModel) -> int:
    """Return how many rows MuJoCo gives to refused constraints at `qpos0`; at least 1."""
    data = mujoco.MjData(model)
    with capture_warnings():
        mujoco.mj_forward(model, data)
    known = [
        i for i, name in enumerate(names(model, "equality")) if _equality(model, i, name, True)
    ]
    of_equalities = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    return max(1, int(np.count_nonzero(of_equalities & ~np.isin(data.efc_id, known))))


def _equality(model: mujoco.MjModel, i: int, name: str, active: bool) -> Equality | None:
    kind = model.eq_type[i]
    if kind == mujoco.mjtEq.mjEQ_CONNECT:
        return _connect(model, i, name, active)
    if kind == mujoco.mjtEq.mjEQ_WELD:
        return _weld(model, i, name, active)
    if kind == mujoco.mjtEq.mjEQ_JOINT:
        joint1, joint2 = _pair(model, i)
        return JointCoupling(name, joint1, joint2, _poly(model, i), active)
    if kind == mujoco.mjtEq.mjEQ_TENDON:
        return _tendon_coupling(model, i, name, active)
    return None


def _connect(model: mujoco.MjModel, i: int, name: str, active: bool) -> Connect:
    data = model.eq_data[i]
    end1, end2 = _ends(model, i, data[0:3], data[3:6])
    return Connect(name, end1.body, end2.body, end1.pos, end2.pos, active)


def _weld(model: mujoco.MjModel, i: int, name: str, active: bool) -> Weld:
    data = model.eq_data[i]
    end1, end2 = _ends(model, i, data[3:6], data[0:3])
    of_sites = model.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE
    return Weld(
        name=name,
        body1=end1.body,
        body2=end2.body,
        anchor1=end1.pos,
        anchor2=end2.pos,
        relquat=end1.quat if of_sites else np.array(data[6:10]),
        torquescale=float(data[TORQUE_SCALE]),
        active=active,
        quat2=end2.quat,
    )


def _ends(model: mujoco.MjModel, i: int, anchor1: Array, anchor2: Array) -> tuple[End, End]:
    ids = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    if model.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE:
        end1, end2 = (
            End(
                int(model.site_bodyid[s]), np.array(model.site_pos[s]), np.array(model.site_quat[s])
            )
            for s in ids
        )
        return end1, end2
    identity = np.array([1.0, 0.0, 0.0, 0.0])
    return End(ids[0], np.array(anchor1), identity), End(ids[1], np.array(anchor2), identity)


def _tendon_coupling(model: mujoco.MjModel, i: int, name: str, active: bool) -> TendonCoupling:
    tendon1, tendon2 = _pair(model, i)
    return TendonCoupling(
        name=name,
        tendon1=tendon1,
        tendon2=tendon2,
        poly=_poly(model, i),
        length1=float(model.tendon_length0[tendon1]),
        length2=0.0 if tendon2 is None else float(model.tendon_length0[tendon2]),
        active=active,
    )


def _pair(model: mujoco.MjModel, i: int) -> tuple[int, int | None]:
    second = int(model.eq_obj2id[i])
    return int(model.eq_obj1id[i]), None if second == NO_OBJECT else second


def _poly(model: mujoco.MjModel, i: int) -> Poly:
    a, b, c, d, e = (float(value) for value in model.eq_data[i, :5])
    return a, b, c, d, e


def _refusals(model: mujoco.MjModel, i: int, name: str) -> list[CoverageItem]:
    kind = mujoco.mjtEq(model.eq_type[i]).name.removeprefix("mjEQ_").lower()
    feature = f"{object_names('equality', [name])}: {kind}"
    advice = (
        f"a {kind} constraint has no equation here; use connect, weld, joint or tendon, "
        'or set active="false"'
    )
    return [CoverageItem(feature, "refused", member, advice) for member in CONSTRAINT_MEMBERS]
