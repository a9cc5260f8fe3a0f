"""What MuJoCo's solver did, as the sensors of limits and of touch read it, before their cutoff.

The input `solver` of `System.sensor`: no function of the state, but of the contacts and of the rows
near a limit that `MjData` holds.
"""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.plant.wrenches import require_same_model

Array = NDArray[np.float64]

LIMITS = {"JOINT": mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT}
LIMITS["TENDON"] = mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON


@checked
def solver_readings(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return (n,) one number for each sensor of kind touch, jointlimit* and tendonlimit*.

    In MuJoCo's order: the sum of the normal forces, N, of the contacts in the zone of a touch
    sensor; distance less margin, rate and force of the row of a limit, zero where there is none.

    Args:
        model: the compiled model.
        data: at the last evaluation; `mj_forward` brings it up to date.

    Raises:
        ProblemError: the data are of another model.
    """
    require_same_model(model, data)
    values = []
    for i in range(model.nsensor):
        word = mujoco.mjtSensor(int(model.sensor_type[i])).name.removeprefix("mjSENS_")
        target = int(model.sensor_objid[i])
        if word == "TOUCH":
            values.append(_touch(model, data, target))
        for kind, row in LIMITS.items():
            if word.startswith(f"{kind}LIMIT"):
                values.append(_of_limit(data, int(row), target, word.removeprefix(f"{kind}LIMIT")))
    return np.array(values)


def _of_limit(data: mujoco.MjData, kind: int, target: int, what: str) -> float:
    """Return a number of the first row of a limit.

    Args:
        data: with the rows.
        kind: of the row.
        target: id of the joint or tendon.
        what: "POS", "VEL" or "FRC".
    """
    rows = np.flatnonzero((data.efc_type == kind) & (data.efc_id == target))
    if not rows.size:
        return 0.0
    k = int(rows[0])
    if what == "POS":
        return float(data.efc_pos[k] - data.efc_margin[k])
    return float((data.efc_vel if what == "VEL" else data.efc_force)[k])


def _touch(model: mujoco.MjModel, data: mujoco.MjData, site: int) -> float:
    """Return the sum of the normal forces on a site's body whose line meets the site's shape."""
    body, total, local = int(model.site_bodyid[site]), 0.0, np.zeros(6)
    for i in range(data.ncon):
        contact = data.contact[i]
        touching = [int(model.geom_bodyid[g]) if g >= 0 else -1 for g in contact.geom]
        if contact.efc_address < 0 or body not in touching:
            continue
        mujoco.mj_contactForce(model, data, i, local)
        if local[0] <= 0.0:
            continue
        ray = contact.frame[:3] * (-1.0 if body == touching[1] else 1.0)
        shape = data.site_xpos[site], data.site_xmat[site], model.site_size[site]
        if mujoco.mju_rayGeom(*shape, contact.pos, ray, int(model.site_type[site])) >= 0:
            total += float(local[0])
    return total
