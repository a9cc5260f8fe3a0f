"""Random MJCF: trees with loops, and legged machines, in any size and any unit system.

Loops are closed where they are drawn: an anchor of `connect` is one point of both bodies at the
initial pose. Motors sit on a part of the joints.
"""

import numpy as np

from campaign.units import Units

GRAVITY = 9.81  # m/s²


class TreeText:
    """Writes one random model; every choice comes from one generator."""

    def __init__(self, seed: int, size: float, units: Units) -> None:
        self.rng = np.random.default_rng(seed)
        self.length, self.mass = size * units.length, size * units.mass
        self.units, self.size = units, size
        self.joints: list[tuple[str, str]] = []
        self.bodies: list[str] = []

    def vector(self, values, scale=1.0) -> str:
        return " ".join(repr(float(x) * scale) for x in np.atleast_1d(values))

    def link(self, axis, inner="", *, slide=False, pos=None, first="") -> str:
        """Return a body with a joint, a box, a site and what it carries."""
        k, rng = len(self.bodies), self.rng
        self.bodies.append(f"b{k}")
        joint = first
        if not first:
            kind = "slide" if slide else "hinge"
            damping = 0.02 * self.mass * self.length ** (0 if slide else 2)
            rate = np.sqrt(GRAVITY / self.size) / self.units.time
            joint = (
                f'<joint name="j{k}" type="{kind}" axis="{self.vector(axis)}" '
                f'damping="{float(damping * rate * rng.random())!r}"/>'
            )
            self.joints.append((f"j{k}", kind))
        place = self.vector(rng.normal(scale=0.3, size=3) if pos is None else pos, self.length)
        box = self.vector(rng.uniform(0.03, 0.15, 3), self.length)
        centre = self.vector(rng.normal(scale=0.1, size=3), self.length)
        mass = float(rng.uniform(0.2, 2.0)) * self.mass
        site = self.vector(rng.normal(scale=0.15, size=3), self.length)
        return (
            f'<body name="b{k}" pos="{place}">{joint}'
            f'<geom type="box" size="{box}" pos="{centre}" mass="{mass!r}"/>'
            f'<site name="s{k}" pos="{site}"/>{inner}</body>'
        )

    def motors(self, share: float) -> str:
        """Return motors on a share of the joints, at least one."""
        count = max(1, round(share * len(self.joints)))
        chosen = sorted(self.rng.permutation(len(self.joints))[:count])
        rows = []
        for i in chosen:
            name, _ = self.joints[i]
            gear = float(self.rng.choice([-1.0, 1.0, 0.3, 20.0]))
            rows.append(f'<motor name="m{i}" joint="{name}" gear="{gear!r}"/>')
        return f"<actuator>{''.join(rows)}</actuator>"

    def document(self, worldbody: str, equality: str, share: float) -> str:
        gravity = GRAVITY * self.units.acceleration
        return (
            f'<mujoco><compiler angle="radian" boundmass="0" boundinertia="0"/>'
            f'<option gravity="0 0 {-gravity!r}"/>'
            f"<worldbody>{worldbody}</worldbody><equality>{equality}</equality>"
            f"{self.motors(share)}</mujoco>"
        )


def looped_tree(
    seed: int, size: float, units: Units, *, links=6, planar=False, loops=1, repeat=0, share=0.6
) -> str:
    """Return a tree of hinges and slides whose ends are connected.

    Args:
        seed: of all choices.
        size: metres of a link, about.
        units: of the numbers.
        links: number of bodies.
        planar: all axes along y; then each loop has rank 2 of 3.
        loops: connections of a late body with the world or an early one.
        repeat: connections that are said twice.
        share: of the joints that have motors.
    """
    text = TreeText(seed, size, units)
    rng = text.rng
    parents = [k - 1 if rng.random() < 0.7 else int(rng.integers(-1, k)) for k in range(links)]
    parents[0] = -1

    def write(k: int) -> str:
        axis = [0, 1, 0] if planar else rng.standard_normal(3)
        number = len(text.bodies)
        order.append(number)
        slide = bool(rng.random() < 0.15)
        if planar and slide:
            axis = [1, 0, 0.3]
        pos = rng.normal(scale=0.35, size=3) * ([1, 0, 1] if planar else 1)
        inside = text.link(axis, "@", slide=slide, pos=pos)
        children = "".join(write(child) for child in range(links) if parents[child] == k)
        return inside.replace("@", children, 1)

    order: list[int] = []
    body = "".join(write(k) for k in range(links) if parents[k] == -1)
    rows = []
    for k in range(loops):
        late = links - 1 - k
        early = "" if rng.random() < 0.6 else f'body2="b{int(rng.integers(0, max(1, late - 2)))}"'
        anchor = rng.normal(scale=0.2, size=3) * ([1, 0, 1] if planar else 1)
        rows.append(
            f'<connect body1="b{late}" {early} anchor="{text.vector(anchor, text.length)}"/>'
        )
    return text.document(body, "".join(rows + rows[:repeat]), share)


def legged(seed: int, size: float, units: Units, *, legs=4, hinges=3, links=False) -> str:
    """Return a trunk on legs; the feet are sites `f0`…; `links` connects two of the legs."""
    text = TreeText(seed, size, units)
    rng = text.rng
    limbs = []
    for k in range(legs):
        angle = 2 * np.pi * (k + 0.3 * rng.random()) / legs
        place = np.array([0.4 * np.cos(angle), 0.4 * np.sin(angle), -0.05])
        foot = f'<site name="f{k}" pos="{text.vector([0.02, 0.01, -0.3], text.length)}"/>'
        for step in reversed(range(hinges)):
            axis = [1, 0.1, 0] if step == 0 else [0.1 * rng.standard_normal(), 1, 0]
            pos = place if step == 0 else np.array([0.06 * (-1) ** step, 0.02, -0.3])
            foot = text.link(axis, foot, pos=pos)
        limbs.append(foot)
    root = text.link(None, "".join(limbs), pos=[0, 0, 1.0], first='<freejoint name="root"/>')
    rows = ""
    if links:
        anchor = text.vector([0.0, 0.0, -0.1], text.length)
        rows = f'<connect body1="b0" body2="b{hinges}" anchor="{anchor}"/>'
    return text.document(root, rows, 1.0)
