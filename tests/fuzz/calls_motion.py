"""Valid calls of poses and motions, and of what takes them."""

from types import SimpleNamespace

import casadi as ca
import control as python_control
import numpy as np

from fuzz import examples as ex
from mbcasadi import motion
from mbcasadi.motion import Pose


def calls_of_motion():
    t, home = ca.SX.sym("t"), "motion."
    pose, other = Pose([0.1, 0.2, 0.3]), Pose([0.2, 0.2, 0.3], [0.9, 0.1, 0.0, 0.0])
    placement = SimpleNamespace(translation=np.zeros(3), rotation=np.eye(3))
    table = ex.folder() / "way.csv"
    names = ("t", *motion.files.POSE_COLUMNS)
    rows = [f"{k},{k},0,0,1,0,0,0" for k in range(5)]
    table.write_text("\n".join([",".join(names), *rows]))
    along = {"self": motion.vector_line([0.0], [1.0], 1.0), "t": 0.5}
    calls = {
        "Pose": {"position": np.zeros(3), "quaternion": [1.0, 0.0, 0.0, 0.0]},
        "Pose.act": {"self": pose, "points": np.zeros(3)},
        "Pose.exp": {"twist": np.zeros(6)},
        "Pose.from_matrix": {"matrix": np.eye(4)},
        "Pose.from_qpos": {"qpos": pose.qpos},
        "Pose.from_rigid_transform": {"transform": SimpleNamespace(as_matrix=lambda: np.eye(4))},
        "Pose.from_rotation": {"position": np.zeros(3), "rotation": pose.to_rotation()},
        "Pose.from_se3": {"placement": placement},
        "Pose.from_xmat": {"xpos": np.zeros(3), "xmat": np.eye(3)},
        "Pose.interpolate": {"self": pose, "other": other, "s": 0.5},
        "PoseMotion.values": {"self": motion.line(pose, other, 1.0), "t": 0.5},
        "VectorMotion.values": along,
        "circle": {"start": pose, "centre": [0, 0, 0], "axis": [0, 0, 1], "period": 1.0},
        "frame_pose": {"system": ex.four_bar(), "frame": "tracer", "q": ex.four_bar().tree.q0},
        "line": {"start": pose, "end": other, "duration": 1.0},
        "pose_motion": {"t": t, "position": ca.vertcat(t, 0, 0)},
        "pose_rates": {
            "t": t,
            "position": ca.vertcat(t, 0, 0),
            "quaternion": ca.vertcat(ca.cos(t), ca.sin(t), 0, 0),
        },
        "ramped_time": {"t": t, "start": 0.0, "ramp": 1.0},
        "read_pose_motion": {"path": table},
        "read_vector_motion": {"path": table, "names": ["x", "y"]},
        "smooth_step": {"t": t, "start": 0.0, "duration": 1.0},
        "spline": {"times": [0.0, 1.0], "poses": [pose, other]},
        "vector_line": {"start": [0.0], "end": [1.0], "duration": 1.0},
        "vector_motion": {"t": t, "value": ca.vertcat(t, 2 * t)},
        "vector_spline": {"times": [0.0, 1.0], "points": [[0.0], [1.0]]},
    }
    return {home + name: arguments for name, arguments in calls.items()}


def calls_of_followers():
    """Return calls of `mbcasadi.control` that take motions."""
    moving = motion.vector_line(np.zeros(4), np.ones(4), 1.0)
    return {"control.follow_motions": {"law": ex.law(), "motions": {"posture": moving}}}


def calls_of_state_spaces():
    """Return calls of regulators that python-control takes or gives."""
    linear, home = ex.linear(), "control.regulators."
    controller = python_control.ss([], [], [], -np.ones((1, 2)))
    calls = {
        "Linearization.matrices": {"self": linear},
        "Linearization.to_ss": {"self": linear},
        "feedback_from_ss": {"linear": linear, "controller": controller},
    }
    return {home + name: arguments for name, arguments in calls.items()}
