"""A picture of what a robot is: links from three sides, a colour for each limb, feet and tools."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription, RobotLimb, RobotTool
from mbcasadi.anatomy.links import Links, standing
from mbcasadi.errors import ProblemError
from mbcasadi.plots import empty_figure
from mbcasadi.system import System

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

UP = np.array([0.0, 0.0, 1.0])
WIDTH, HEIGHT = 12.0, 5.0  # inches
ARROW = 0.25  # length of the arrow ahead, of the height of the robot
SUFFIXES = (".png", ".svg", ".pdf")
FEWER = 10  # limbs up to which colours are the ten of matplotlib's cycle


class View(NamedTuple):
    """What is seen from a side.

    Attributes:
        name: of the side.
        right, up: (3,) world axes on paper.
        across, along: names of both.
    """

    name: str
    right: Array
    up: Array
    across: str
    along: str

    def of(self, points: Array) -> tuple[Array, Array]:
        """Return places on paper of points (..., 3), m."""
        return points @ self.right, points @ self.up


class Part(NamedTuple):
    """What has one colour: a limb, or all else that moves.

    Attributes:
        label: for the legend.
        way: (k, 3) from its mount along its joints to its end, m.
        bodies: that it has.
        feet: (k, 3) where it stands, m.
        tools: (k, 3), m.
    """

    label: str
    way: Array
    bodies: frozenset[int]
    feet: Array
    tools: Array


def draw_robot(system: System, robot: RobotDescription, path: Path) -> Path:
    """Write a picture of a robot in the pose of its description, seen from three sides.

    Shapes are their hulls, joints dots, feet triangles, tools crosses.

    Args:
        system: that was read from a model.
        robot: its description.
        path: of a .png, .svg or .pdf file; an earlier one is replaced.

    Raises:
        ProblemError: another suffix, or no such folder.
        MissingExtraError: matplotlib is not installed.
    """
    if path.suffix not in SUFFIXES or not path.absolute().parent.is_dir():
        raise ProblemError(
            f"{path}: expected a file in a folder that exists, which ends with "
            f"{', '.join(SUFFIXES)}"
        )
    figure = empty_figure()
    figure.set_size_inches(WIDTH, HEIGHT)
    assert system.tree is not None  # `describe` requires one
    links = standing(system.tree)
    ahead, left = (np.append(axis, 0.0) for axis in (robot.ahead, robot.left))
    views = (
        View("from its right", ahead, UP, "ahead", "up"),
        View("from behind", -left, UP, "right", "up"),
        View("from above", ahead, left, "ahead", "left"),
    )
    parts = [*_parts(links, robot)]
    for axes, view in zip(figure.subplots(1, len(views)), views, strict=True):
        _draw(axes, view, links, parts)
        _draw_ahead(axes, view, links, ahead)
        axes.set(title=view.name, xlabel=f"{view.across}, m", ylabel=f"{view.along}, m")
        axes.set_aspect("equal", adjustable="datalim")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.suptitle(robot.text.splitlines()[0])
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7)
    figure.savefig(path, dpi=110)
    return path


def _draw(axes: "Axes", view: View, links: Links, parts: list[Part]) -> None:
    """Draw all parts, and what belongs to none of them in grey."""
    from matplotlib import colormaps

    owners = {body: k for k, part in enumerate(parts) for body in part.bodies}
    colours = colormaps["tab10" if len(parts) <= FEWER else "tab20"].colors  # type: ignore[attr-defined]
    for geom in links.tree.geoms:
        if links.tree.bodies[geom.body].weld_root and geom.kind != "plane":
            owner = owners.get(geom.body)
            colour = "0.6" if owner is None else colours[owner % len(colours)]
            axes.fill(*_outline(view, links.points(geom)), color=colour, alpha=0.25, linewidth=0)
    for k, part in enumerate(parts):
        colour = colours[k % len(colours)]
        axes.plot(*view.of(part.way), "o-", color=colour, markersize=3, label=part.label)
        axes.plot(*view.of(part.feet), "v", color=colour, markersize=5)
        axes.plot(*view.of(part.tools), "x", color=colour, markersize=8, markeredgewidth=2)


def _draw_ahead(axes: "Axes", view: View, links: Links, ahead: Array) -> None:
    """Draw an arrow from the centre of what moves, in the direction in which it looks."""
    low, height = links.heights
    start = np.mean([links.center(root) for root in links.children[0]], axis=0)
    start[2] = low + height / 2
    end = start + ARROW * height * ahead
    (x0, z0), (x1, z1) = view.of(start), view.of(end)
    tail, tip = (float(x0), float(z0)), (float(x1), float(z1))
    if tip != tail:
        axes.annotate("", tip, tail, arrowprops={"arrowstyle": "->", "linewidth": 1.5})
        axes.annotate("ahead", tip, fontsize=8)


def _outline(view: View, points: Array) -> tuple[Array, Array]:
    """Return the hull of points (k, 3) on paper."""
    import scipy.spatial

    flat = np.column_stack(view.of(points))
    try:
        corners = scipy.spatial.ConvexHull(flat).vertices
    except scipy.spatial.QhullError:  # all on one line
        corners = np.arange(len(flat))
    return flat[corners, 0], flat[corners, 1]


def _parts(links: Links, robot: RobotDescription) -> Iterator[Part]:
    """Yield each limb, and its fingers."""
    for limb in robot.limbs:
        yield _part(links, limb)
        yield from (_part(links, finger) for finger in limb.fingers)


def _part(links: Links, limb: RobotLimb) -> Part:
    """Return a limb in the world."""
    tree = links.tree
    body = {each.name: k for k, each in enumerate(tree.bodies)}
    joints = {joint.name: joint for joint in tree.joints}
    moving = [joints[name] for name in limb.joints]
    end = links.place(body[limb.name], np.zeros(3))
    feet = tools = np.zeros((0, 3))
    if limb.foot is not None:
        feet = links.place(body[limb.foot.body], limb.foot.points)
        end = feet.mean(axis=0)
    elif limb.role in ("arm", "finger"):
        end = _place(links, limb.tool)
        tools = end[None]
    owned = {tree.bodies[joint.body].weld_root for joint in moving}
    return Part(
        label=f"{limb.side} {limb.role} {limb.name}",
        way=np.array([*(links.anchor(joint) for joint in moving), end]),
        bodies=frozenset(k for k, each in enumerate(tree.bodies) if each.weld_root in owned),
        feet=feet,
        tools=tools,
    )


def _place(links: Links, tool: RobotTool) -> Array:
    """Return where a tool's frame is in the world, m."""
    key = tool.frame, tool.kind
    frame = next(each for each in links.tree.frames if (each.name, each.kind) == key)
    return links.place(frame.body, frame.pos)
