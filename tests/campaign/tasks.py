"""The tasks of a case at a closed state: `J a = right`, weighted."""

import numpy as np
from scipy.spatial.transform import Rotation

from campaign.case import Case, Inputs, Pose
from campaign.mechanics import Array, FrameNumbers


def task_rows(case: Case, inputs: Inputs) -> list[tuple[Array, Array, Array]]:
    """Return (J, right side, weight) of each task at the closed state."""
    q, v, at = inputs.closed_q, inputs.closed_v, inputs.numbers
    reference = {key: inputs.ref[place] for key, place in case.controller.reference_slices.items()}
    rows = []
    for task in case.tasks:
        kd = 2 * np.sqrt(task.kp)
        if isinstance(task, Pose):
            frame = at.frames[task.frame]
            part = {
                key.removeprefix(f"{task.name}."): value
                for key, value in reference.items()
                if key.startswith(f"{task.name}.")
            }
            error, v_ref, a_ref = _pose_reference(part, frame)
            right = a_ref + kd * (v_ref - frame.J @ v) + task.kp * error - frame.c
            rows.append((frame.J, right, task.weight))
        else:
            error = reference["posture.q"] - q[task.places]
            rate = reference["posture.v"] - v[task.dofs]
            right = reference["posture.a"] + kd * rate + task.kp * error
            rows.append((np.eye(case.mechanics.nv)[task.dofs], right, task.weight))
    return rows


def _pose_reference(part: dict[str, Array], frame: FrameNumbers) -> tuple[Array, Array, Array]:
    """Return the error of a pose, or of a point, and its velocity and acceleration."""
    error = part["position"] - frame.position
    if "quaternion" not in part:
        return error, part["velocity"], part["acceleration"]
    w, x, y, z = part["quaternion"]
    apart = Rotation.from_quat([x, y, z, w]) * Rotation.from_matrix(frame.rotation).inv()
    return (
        np.concatenate([error, apart.as_rotvec()]),
        np.concatenate([part["velocity"], part["angular_velocity"]]),
        np.concatenate([part["acceleration"], part["angular_acceleration"]]),
    )


def natural_error(case: Case) -> float:
    """Return the tasks' weighted error by accelerations as the mechanism swings."""
    errors = []
    for task in case.tasks:
        size = case.size[task.dofs] if not isinstance(task, Pose) else case.length
        errors.append(np.sqrt(np.sum(task.weight * (case.rate**2 * size) ** 2)))
    return float(np.linalg.norm(errors))
