"""The tasks of a case at a closed state: `J a = right`, weighted."""

import numpy as np
from scipy.spatial.transform import Rotation

from campaign.case import Case, Inputs, Pose
from campaign.mechanics import Array


def task_rows(case: Case, inputs: Inputs) -> list[tuple[Array, Array, Array]]:
    """Return (J, right side, weight) of each task at the closed state."""
    q, v, at = inputs.closed_q, inputs.closed_v, inputs.numbers
    reference = {key: inputs.ref[place] for key, place in case.controller.reference.items()}
    rows = []
    for task in case.tasks:
        kd = 2 * np.sqrt(task.kp)
        if isinstance(task, Pose):
            frame = at.frames[task.frame]
            part = {key: reference[f"{task.name}.{key}"] for key in POSE_SLICES}
            w, x, y, z = part["quaternion"]
            apart = Rotation.from_quat([x, y, z, w]) * Rotation.from_matrix(frame.rotation).inv()
            error = np.concatenate([part["position"] - frame.position, apart.as_rotvec()])
            rate = np.concatenate([part["velocity"], part["angular_velocity"]]) - frame.J @ v
            a_ref = np.concatenate([part["acceleration"], part["angular_acceleration"]])
            rows.append((frame.J, a_ref + kd * rate + task.kp * error - frame.c, task.weight))
        else:
            error = reference["posture.q"] - q[task.places]
            rate = reference["posture.v"] - v[task.dofs]
            right = reference["posture.a"] + kd * rate + task.kp * error
            rows.append((np.eye(case.mechanics.nv)[task.dofs], right, task.weight))
    return rows


def natural_error(case: Case) -> float:
    """Return the tasks' weighted error by accelerations as the mechanism swings."""
    errors = []
    for task in case.tasks:
        size = case.size[task.dofs] if not isinstance(task, Pose) else case.length
        errors.append(np.sqrt(np.sum(task.weight * (case.rate**2 * size) ** 2)))
    return float(np.linalg.norm(errors))


POSE_SLICES = (
    "position", "velocity", "acceleration", "quaternion", "angular_velocity",
    "angular_acceleration",
)  # fmt: skip
