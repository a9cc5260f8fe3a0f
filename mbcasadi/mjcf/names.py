"""Unique names for everything that a model holds."""

import mujoco

OBJECTS = {
    "body": (mujoco.mjtObj.mjOBJ_BODY, "nbody"),
    "joint": (mujoco.mjtObj.mjOBJ_JOINT, "njnt"),
    "geom": (mujoco.mjtObj.mjOBJ_GEOM, "ngeom"),
    "pair": (mujoco.mjtObj.mjOBJ_PAIR, "npair"),
    "site": (mujoco.mjtObj.mjOBJ_SITE, "nsite"),
    "camera": (mujoco.mjtObj.mjOBJ_CAMERA, "ncam"),
    "tendon": (mujoco.mjtObj.mjOBJ_TENDON, "ntendon"),
    "sensor": (mujoco.mjtObj.mjOBJ_SENSOR, "nsensor"),
    "equality": (mujoco.mjtObj.mjOBJ_EQUALITY, "neq"),
    "flex": (mujoco.mjtObj.mjOBJ_FLEX, "nflex"),
    "key": (mujoco.mjtObj.mjOBJ_KEY, "nkey"),
}


def names(model: mujoco.MjModel, kind: str, count: int | None = None) -> tuple[str, ...]:
    """Return a unique name for each object; nameless ones get `<kind><id>`.

    Args:
        model: the compiled model.
        kind: a key of `OBJECTS`, or "actuator".
        count: how many there are, where the model has no plain size for it (actuators).
    """
    if kind == "actuator":
        object_type, size = mujoco.mjtObj.mjOBJ_ACTUATOR, int(count or 0)
    else:
        object_type, field = OBJECTS[kind]
        size = int(getattr(model, field))
    model_names = [mujoco.mj_id2name(model, object_type, i) for i in range(size)]
    taken = {name for name in model_names if name}
    unique = []
    for i, name in enumerate(model_names):
        if not name:
            name = f"{kind}{i}"
            while name in taken:
                name += "_"
        unique.append(name)
    return tuple(unique)


def model_name(model: mujoco.MjModel) -> str:
    """Return the name of the model; MuJoCo puts it before all others."""
    return str(model.names.split(b"\0", 1)[0].decode())


def object_names(kind: str, members: list[str]) -> str:
    """Return `joint 'elbow', 'wrist'`."""
    return f"{kind} " + ", ".join(f"'{name}'" for name in members)
