"""Peers of the kernel benchmark, built from their headers: MuJoCo's C and Pinocchio's C++."""

import importlib.metadata
import importlib.util
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from mbcasadi.description import Frame, RigidTree
from mbcasadi.model.placement import Pose, pose_of_quat

NATIVE = Path(__file__).parent / "native"
WORLD = -1
KINDS = {"free": 0, "ball": 1, "slide": 2, "hinge": 3}

Inertia = tuple[float, np.ndarray, np.ndarray]

# What Pinocchio's own build sets, so that its list of joints fits into Boost's variant.
PINOCCHIO_DEFINES = (
    "-DNDEBUG",
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)


@dataclass(frozen=True)
class TimedModel:
    """A model file, its tree, and the frames whose Jacobians are timed."""

    path: Path
    tree: RigidTree
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Peer:
    """A program that times the peer on one model, or the reason why there is none.

    Attributes:
        name: what is timed, with its version.
        program: the compiled program, or None.
        reason: why it is None.
        model_input: (model, folder) → first argument of the program and its last ones.
    """

    name: str
    program: Path | None
    reason: str
    model_input: Callable[[TimedModel, Path], tuple[str, list[str]]]


def build_mujoco(work: Path, flags: Sequence[str]) -> Peer:
    """Compile the program that calls the library of MuJoCo's wheel."""
    name = f"MuJoCo {mujoco.__version__} C"
    package = Path(mujoco.__file__).parent
    libraries = sorted(package.glob("libmujoco*"))
    if not libraries:
        return Peer(name, None, "the wheel has no library", _mujoco_input)
    program = work / "kernels_mujoco"
    command = [os.environ.get("CC", "cc"), *flags, f"-I{NATIVE}", f"-I{package / 'include'}"]
    command += [str(NATIVE / "kernels_mujoco.c"), str(libraries[0]), f"-Wl,-rpath,{package}"]
    reason = compile_program([*command, "-o", str(program)])
    return Peer(name, None if reason else program, reason, _mujoco_input)


def build_pinocchio(work: Path, flags: Sequence[str], source: str = "kernels_pinocchio") -> Peer:
    """Compile a program that instantiates Pinocchio's templates; takes about a minute."""
    name = "Pinocchio C++"
    prefix = _pinocchio_prefix()
    if prefix is None:
        return Peer(name, None, "install pin", pinocchio_input)
    name = f"Pinocchio {_version('libpinocchio', 'pin')} C++"
    eigen = [p for p in (prefix / "include/eigen3", Path("/usr/include/eigen3")) if p.is_dir()]
    if not eigen:
        return Peer(name, None, "its headers need Eigen's; install cmeel-eigen", pinocchio_input)
    program = work / source
    command = [os.environ.get("CXX", "c++"), "-std=c++17", *flags, *PINOCCHIO_DEFINES]
    command += [f"-I{NATIVE}", f"-I{prefix / 'include'}", f"-I{eigen[0]}"]
    command += [str(NATIVE / f"{source}.cpp"), "-o", str(program)]
    reason = compile_program(command)
    return Peer(name, None if reason else program, reason, pinocchio_input)


def compile_program(command: Sequence[str]) -> str:
    """Run a compiler; return "" or why it failed."""
    process = subprocess.run(command, capture_output=True, encoding="utf-8")
    if process.returncode == 0:
        return ""
    errors = [line for line in process.stderr.splitlines() if "error" in line]
    return f"does not compile: {errors[0] if errors else process.stderr[-200:]}"


def _pinocchio_prefix() -> Path | None:
    """Return the installation prefix of the `pin` wheel, which ships its headers."""
    spec = importlib.util.find_spec("cmeel")
    if spec is None or spec.origin is None:
        return None
    prefix = Path(spec.origin).parents[1] / "cmeel.prefix"
    return prefix if (prefix / "include/pinocchio").is_dir() else None


def _version(*distributions: str) -> str:
    installed = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    return next((installed[name] for name in distributions if name in installed), "")


def _mujoco_input(model: TimedModel, _: Path) -> tuple[str, list[str]]:
    sites = [frame for frame in model.tree.frames if frame.kind == "site"]
    return str(model.path), [
        f"s{sites.index(f)}" if f.kind == "site" else f"b{f.body}" for f in model.frames
    ]


def pinocchio_input(model: TimedModel, folder: Path) -> tuple[str, list[str]]:
    """Write the tree as numbers: joints at their anchors, in the axes of their bodies."""
    tree = model.tree
    carried = attach_bodies(tree)
    lines = []
    for j, parent, at in carried.joints:
        joint = tree.joints[j]
        mass, com, inertia = weld_inertias(carried.inertias.get(j, []))
        numbers = [*joint.axis, joint.ref, *at.R.ravel(), *at.p, tree.armature[joint.dof]]
        numbers += [mass, *com, *(inertia[r, c] for r in range(3) for c in range(r + 1))]
        lines.append(f"{parent} {KINDS[joint.kind]} {_text(numbers)}")
    lines.append(f"{_text(tree.gravity)} {len(model.frames)}")
    for frame in model.frames:
        carrier, place = carried.bodies[frame.body]
        pose = place @ pose_of_quat(frame.pos, frame.quat)
        lines.append(f"{carrier} {_text([*pose.R.ravel(), *pose.p])}")
    target = folder / "tree.txt"
    target.write_text("\n".join([str(len(carried.joints)), *lines]) + "\n")
    return str(target), []


@dataclass(frozen=True)
class Carried:
    """The tree as joints and what they carry.

    Attributes:
        joints: (joint, parent joint, placement in the parent joint's frame).
        bodies: for each body the joint that carries it and its pose in that joint's frame.
        inertias: for each joint (mass, centre of mass, inertia) of the bodies that it carries.
    """

    joints: list[tuple[int, int, Pose]]
    bodies: list[tuple[int, Pose]]
    inertias: dict[int, list[Inertia]]


def attach_bodies(tree: RigidTree) -> Carried:
    """Walk the bodies; a joint's frame has its origin at the anchor and its body's axes."""
    carried = Carried([], [(WORLD, Pose.identity())], {})
    for body in tree.bodies[1:]:
        carrier, place = carried.bodies[body.parent]
        place = place @ pose_of_quat(body.pos, body.quat)
        for j in body.joints:
            joint = tree.joints[j]
            anchor = Pose(np.eye(3), np.asarray(joint.pos, float))
            at = Pose.identity() if joint.kind == "free" else place @ anchor
            carried.joints.append((j, carrier, at))
            carrier, place = j, anchor.inverse()
        carried.bodies.append((carrier, place))
        com, inertia = place.R @ body.com + place.p, place.R @ body.inertia @ place.R.T
        carried.inertias.setdefault(carrier, []).append((body.mass, com, inertia))
    return carried


def weld_inertias(bodies: Sequence[Inertia]) -> Inertia:
    """Return mass, centre of mass and inertia about it of bodies that are welded together."""
    mass = sum(m for m, _, _ in bodies)
    weighted = sum((m * c for m, c, _ in bodies), np.zeros(3))
    com = weighted / mass if mass > 0.0 else weighted
    total = np.zeros((3, 3))
    for m, c, inertia in bodies:
        arm = c - com
        total += inertia + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return mass, com, total


def _text(numbers: Iterable[float]) -> str:
    return " ".join(f"{float(x):.17g}" for x in numbers)
