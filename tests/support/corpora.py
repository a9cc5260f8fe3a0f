"""Models that tests read: our own, those of PyPI packages, and robots kept beside the project.

Nothing is skipped in silence: a package or a folder that is absent skips its tests by name.
"""

import importlib.util
from pathlib import Path

import mujoco
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT_MODELS = sorted((ROOT / "mujoco_models").glob("*.xml"))
ROBOTS = ROOT.parent / "shared" / "models"

PACKAGED = {
    "gymnasium": (
        "envs/mujoco/assets",
        (
            "ant",
            "half_cheetah",
            "hopper",
            "humanoid",
            "inverted_double_pendulum",
            "point",
            "pusher_v5",
            "pusher",
            "swimmer",
            "walker2d_v5",
        ),
    ),
    "dm_control": (
        "suite",
        (
            "acrobot",
            "ball_in_cup",
            "cheetah",
            "finger",
            "fish",
            "hopper",
            "humanoid",
            "humanoid_CMU",
            "manipulator",
            "point_mass",
            "quadruped",
            "stacker",
            "walker",
        ),
    ),
}
ROBOT_NAMES = (
    "dmc__suite__cartpole",
    "dmc__suite__humanoid",
    "dmc__suite__manipulator",
    "dmc__suite__quadruped",
    "erd__robots__talos_full_v2",
    "gym__assets__ant",
    "gym__assets__half_cheetah",
    "gym__assets__humanoid",
    "men__agility_cassie__cassie",
    "men__aloha__aloha",
    "men__bitcraze_crazyflie_2__cf2",
    "men__boston_dynamics_spot__spot",
    "men__franka_emika_panda__panda",
    "men__kuka_iiwa_14__iiwa14",
    "men__robotiq_2f85__2f85",
    "men__shadow_hand__right_hand",
    "men__unitree_g1__g1",
    "men__unitree_go2__go2",
    "men__universal_robots_ur5e__ur5e",
    "rs__panda__robot",
)


def packaged_names() -> list[str]:
    """Return `package/model` for every packaged model."""
    return [f"{package}/{name}" for package, (_, names) in PACKAGED.items() for name in names]


def packaged_model(label: str) -> Path:
    """Return the path of a packaged model; skip the test if the package is not installed."""
    package, name = label.split("/")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{label}: the package {package} is not installed")
    path = Path(spec.origin).parent / PACKAGED[package][0] / f"{name}.xml"
    if not path.is_file():
        pytest.skip(f"{label}: this version of {package} has no such model")
    return path


def robot(name: str) -> Path:
    """Return the path of a robot model; skip the test if the folder is absent."""
    path = ROBOTS / f"{name}.xml"
    if not path.is_file():
        pytest.skip(f"robot model {name} is not beside the project")
    if mujoco.__version__ < "4" and 'input="' in path.read_text():
        pytest.skip(f"robot model {name} is written for MuJoCo 4, this is {mujoco.__version__}")
    return path
