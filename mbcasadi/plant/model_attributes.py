"""Fields of a compiled model that are parameters by name: how each is read and written."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import SimulationError

Array = NDArray[np.float64]

XYZ = ("x", "y", "z")
INERTIA = ("xx", "yy", "zz", "xy", "xz", "yz")
INERTIA_PLACES = ((0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2))
WXYZ = ("w", "x", "y", "z")
ENDS = ("lower", "upper")
NO_STATE = -1
BALL = (int(mujoco.mjtJoint.mjJNT_BALL),)
SCALAR = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
PAIRS = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))


class Attribute(NamedTuple):
    """One attribute of the elements of a kind.

    Fields: `read` (model, id) → entries, `write` (model, id, entries), `names` of the entries,
    `has`: whether an element has it.
    """

    read: Callable[[mujoco.MjModel, int], Array]
    write: Callable[[mujoco.MjModel, int, Array], None]
    names: tuple[str, ...] = ()
    has: Callable[[mujoco.MjModel, int], bool] = lambda _model, _id: True


def _field(name: str) -> Attribute:
    """Return an attribute that is a row of a field of the model."""

    def write(model: mujoco.MjModel, i: int, values: Array) -> None:
        getattr(model, name)[i] = values[0]

    return Attribute(lambda model, i: np.atleast_1d(getattr(model, name)[i]).astype(float), write)


def _has_no_geom(model: mujoco.MjModel, i: int) -> bool:
    """Return whether a tendon wraps around no geom: MuJoCo stops at armature of one that does."""
    path = slice(model.tendon_adr[i], model.tendon_adr[i] + model.tendon_num[i])
    geoms = (int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER))
    return not np.isin(model.wrap_type[path], geoms).any()


def _of_dofs(name: str) -> Attribute:
    """Return an attribute of a joint that is a field of its degrees of freedom."""

    def write(model: mujoco.MjModel, i: int, values: Array) -> None:
        getattr(model, name)[model.dof_jntid == i] = values[0]

    def entries(model: mujoco.MjModel, i: int) -> Array:
        return np.array(getattr(model, name)[model.dof_jntid == i], dtype=float)

    return Attribute(
        lambda model, i: entries(model, i)[:1],
        write,
        has=lambda model, i: bool(np.all(entries(model, i) == entries(model, i)[0])),
    )


def _read_inertia(model: mujoco.MjModel, i: int) -> Array:
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, model.body_iquat[i])
    axes = R.reshape(3, 3)
    return np.asarray((axes @ np.diag(model.body_inertia[i]) @ axes.T)[INERTIA_PLACES])


def _write_inertia(model: mujoco.MjModel, i: int, values: Array) -> None:
    full = np.zeros((3, 3))
    full[INERTIA_PLACES] = values
    full = full + full.T - np.diag(np.diag(full))
    moments, axes = np.linalg.eigh(full)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    forget_common_frames(model, i, "inertia")
    model.body_inertia[i] = moments
    mujoco.mju_mat2Quat(model.body_iquat[i], axes.ravel())


def _write_com(model: mujoco.MjModel, i: int, values: Array) -> None:
    forget_common_frames(model, i, "com")
    model.body_ipos[i] = values


def forget_common_frames(model: mujoco.MjModel, body: int, edit: str) -> None:
    """Let MuJoCo compute all frames from their own poses: some were those of the inertia.

    Raises:
        SimulationError: a body whose mass matrix is stored as diagonal, which the edit would
            change.
    """
    if model.body_simple[body] and model.body_dofnum[body]:
        raise SimulationError(
            f"{edit!r} of body {model.body(body).name!r}: MuJoCo compiled it with a diagonal mass "
            f'matrix; write <body simple="false" .../> (MuJoCo 4), or leave {edit!r} out'
        )
    for field in ("body_sameframe", "geom_sameframe", "site_sameframe"):
        getattr(model, field)[:] = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)


def _of_site(name: str, components: tuple[str, ...]) -> Attribute:
    """Return position or rotation of a site that is no end of an equality."""

    def write(model: mujoco.MjModel, i: int, values: Array) -> None:
        model.site_sameframe[i] = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)
        getattr(model, f"site_{name}")[i] = values

    def has(model: mujoco.MjModel, i: int) -> bool:
        of_sites = model.eq_objtype == mujoco.mjtObj.mjOBJ_SITE
        return i not in {*model.eq_obj1id[of_sites], *model.eq_obj2id[of_sites]}

    return Attribute(
        lambda model, i: np.array(getattr(model, f"site_{name}")[i]), write, components, has
    )


def _anchor(first: int, kinds: tuple[int, ...]) -> Attribute:
    """Return an anchor of a connect or weld of two bodies.

    Args:
        first: its place in `eq_data`: MJCF's own anchor comes before the derived one.
        kinds: of equalities that have it.
    """
    place = slice(first, first + 3)

    def write(model: mujoco.MjModel, i: int, values: Array) -> None:
        model.eq_data[i, place] = values

    def has(model: mujoco.MjModel, i: int) -> bool:
        of_bodies = model.eq_objtype[i] == mujoco.mjtObj.mjOBJ_BODY
        return bool(of_bodies and int(model.eq_type[i]) in kinds)

    return Attribute(lambda model, i: np.array(model.eq_data[i, place]), write, XYZ, has)


def _write_poly(model: mujoco.MjModel, i: int, values: Array) -> None:
    model.eq_data[i, :5] = values


def _rest(components: tuple[str, ...], kinds: tuple[int, ...]) -> Attribute:
    """Return the rest of the springs of joints of these kinds."""

    def rows(model: mujoco.MjModel, i: int) -> slice:
        first = int(model.jnt_qposadr[i])
        return slice(first, first + max(1, len(components)))

    def write(model: mujoco.MjModel, i: int, values: Array) -> None:
        model.qpos_spring[rows(model, i)] = values

    return Attribute(
        lambda model, i: np.array(model.qpos_spring[rows(model, i)]),
        write,
        components,
        lambda model, i: bool(
            int(model.jnt_type[i]) in kinds and (kinds == SCALAR or _yields(model, "jnt", i))
        ),
    )


def _yields(model: mujoco.MjModel, kind: str, i: int) -> bool:
    """Return whether the spring of a joint (`jnt`) or `tendon` yields, which needs MuJoCo 4.0."""
    places = getattr(model, f"{kind}_plasticadr", None)
    return bool(places is not None and int(places[i]) != NO_STATE)


def _write_band(model: mujoco.MjModel, i: int, values: Array) -> None:
    model.tendon_lengthspring[i] = values


def _option(name: str, components: tuple[str, ...] = ()) -> Attribute:
    """Return an option of the model, a number or a vector."""

    def write(model: mujoco.MjModel, _: int, values: Array) -> None:
        setattr(model.opt, name, values if components else values[0])

    def read(model: mujoco.MjModel, _: int) -> Array:
        return np.array(getattr(model.opt, name), dtype=float, ndmin=1)

    return Attribute(read, write, components)


def _affine_law(law: str, terms: tuple[str, ...], read_by: Mapping[int, int]) -> Attribute:
    """Return the terms of an actuator's gain or bias, those that MuJoCo reads of its type.

    Args:
        law: "gain" or "bias".
        terms: names of the terms.
        read_by: type → how many terms MuJoCo reads.
    """

    def count(model: mujoco.MjModel, i: int) -> int:
        if int(model.actuator_gaintype[i]) not in GAIN_TERMS or model.actuator_plugin[i] >= 0:
            return 0  # a law of its own: a muscle, a motor, a servo with an integral
        kind: int = int(getattr(model, f"actuator_{law}type")[i])
        read_terms: int = read_by.get(kind, 0)
        return min(len(terms), read_terms)

    def read(model: mujoco.MjModel, i: int) -> Array:
        return np.array(getattr(model, f"actuator_{law}prm")[i, : count(model, i)])

    def write(model: mujoco.MjModel, i: int, values: Array) -> None:
        getattr(model, f"actuator_{law}prm")[i, : len(values)] = values

    return Attribute(read, write, terms, lambda model, i: count(model, i) > 0)


GAIN_TERMS = {int(mujoco.mjtGain.mjGAIN_FIXED): 1, int(mujoco.mjtGain.mjGAIN_AFFINE): 3}
BIAS_TERMS = {int(mujoco.mjtBias.mjBIAS_AFFINE): 3}

OPTIONS = {
    "gravity": _option("gravity", XYZ),
    "wind": _option("wind", XYZ),
    "density": _option("density"),
    "viscosity": _option("viscosity"),
}

ATTRIBUTES: dict[str, dict[str, Attribute]] = {
    "body": {
        "mass": _field("body_mass"),
        "com": Attribute(lambda model, i: np.array(model.body_ipos[i]), _write_com, XYZ),
        "inertia": Attribute(_read_inertia, _write_inertia, INERTIA),
        "gravcomp": _field("body_gravcomp"),
    },
    "site": {
        "pos": _of_site("pos", XYZ),
        "quat": _of_site("quat", WXYZ),
    },
    "joint": {
        "damping": _of_dofs("dof_damping"),
        "armature": _of_dofs("dof_armature"),
        "stiffness": _field("jnt_stiffness"),
        "springref": _rest((), SCALAR),
        "springquat": _rest(WXYZ, BALL),
    },
    "tendon": {
        "stiffness": _field("tendon_stiffness"),
        "springlength": Attribute(
            lambda model, i: np.array(model.tendon_lengthspring[i]),
            _write_band,
            ENDS,
            lambda model, i: _yields(model, "tendon", i),
        ),
        "damping": _field("tendon_damping"),
        "armature": _field("tendon_armature")._replace(has=_has_no_geom),
    },
    "actuator": {
        "gain": _affine_law("gain", ("constant", "length"), GAIN_TERMS),
        "bias": _affine_law("bias", ("constant", "length", "velocity"), BIAS_TERMS),
    },
    "equality": {
        "anchor": _anchor(0, PAIRS),
        "anchor2": _anchor(3, PAIRS[:1]),
        "anchor1": _anchor(3, PAIRS[1:]),
        "polycoef": Attribute(
            lambda model, i: np.array(model.eq_data[i, :5]),
            _write_poly,
            tuple("01234"),
            lambda model, i: bool(int(model.eq_type[i]) not in PAIRS),
        ),
    },
}
