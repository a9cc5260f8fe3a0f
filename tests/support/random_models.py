"""Random MJCF: trees of random joints with constraints, tendons and actuators between them."""

import numpy as np

JOINT_KINDS = ("hinge", "slide", "ball")


class Writer:
    """Writes one random model; every choice comes from one generator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.joints: list[tuple[str, str]] = []
        self.sites: list[str] = []
        self.bodies: list[str] = []

    def numbers(self, count: int, scale: float = 1.0) -> str:
        """Return `count` random numbers with all their digits."""
        return " ".join(repr(float(x)) for x in self.rng.normal(scale=scale, size=count))

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return bool(self.rng.random() < probability)

    def pick(self, items: list[str]) -> str:
        """Return one of the items."""
        return items[int(self.rng.integers(len(items)))]

    def scalars(self) -> list[str]:
        """Return the names of slide and hinge joints."""
        return [name for name, kind in self.joints if kind in ("hinge", "slide")]

    def joint(self, kind: str) -> str:
        """Return a joint with random springs, dampers and reference."""
        name = f"j{len(self.joints)}"
        self.joints.append((name, kind))
        parts = [f'<joint name="{name}" type="{kind}"']
        if kind != "free":
            parts.append(f'pos="{self.numbers(3, 0.2)}"')
        if kind in ("hinge", "slide"):
            parts.append(f'axis="{self.numbers(3)}"')
            if self.chance(0.3):
                parts.append(f'ref="{self.numbers(1)}" springref="{self.numbers(1)}"')
            if self.chance(0.2):
                parts.append('actuatorfrcrange="-.7 1.1" actuatorfrclimited="true"')
        if self.chance(0.3):
            parts.append(f'stiffness="{abs(self.rng.normal()):.6f} .2 .3"')
        if self.chance(0.3):
            parts.append(f'damping="{abs(self.rng.normal()):.6f} .1 .2"')
        if self.chance(0.3):
            parts.append(f'armature="{abs(self.rng.normal()):.6f}"')
        return " ".join(parts) + "/>"

    def body(self, depth: int) -> str:
        """Return a body with joints, a site and perhaps children."""
        name = f"b{len(self.bodies)}"
        self.bodies.append(name)
        if depth == 0 and self.chance(0.4):
            kinds = ["free"]
        else:
            kinds = [self.pick(list(JOINT_KINDS)) for _ in range(int(self.rng.integers(0, 4)))]
            if "ball" in kinds:
                # MuJoCo allows no rotation after a ball joint on the same body
                last = kinds.index("ball") + 1
                kinds = kinds[:last] + [kind for kind in kinds[last:] if kind == "slide"]
        joints = "".join(self.joint(kind) for kind in kinds)
        site = f"s{len(self.sites)}"
        self.sites.append(site)
        children = int(self.rng.integers(0, 3)) if depth < 3 else 0
        compensation = f' gravcomp="{self.rng.random():.6f}"' if self.chance(0.2) else ""
        return (
            f'<body name="{name}" pos="{self.numbers(3, 0.3)}" quat="{self.numbers(4)}"'
            f"{compensation}>{joints}"
            f'<geom type="box" size=".1 .2 .3" pos="{self.numbers(3, 0.2)}" '
            f'quat="{self.numbers(4)}" mass="{0.1 + self.rng.random():.6f}"/>'
            f'<site name="{site}" pos="{self.numbers(3, 0.2)}" quat="{self.numbers(4)}"/>'
            + "".join(self.body(depth + 1) for _ in range(children))
            + "</body>"
        )

    def tendons(self) -> str:
        """Return two fixed tendons, or none."""
        scalars = self.scalars()
        if len(scalars) < 2:
            return ""
        chosen = [list(self.rng.permutation(scalars)[:2]) for _ in range(2)]
        return (
            "<tendon>"
            + "".join(
                f'<fixed name="t{k}" stiffness=".4 .1 .2" damping=".3" armature=".2" '
                f'springlength="-.1 .2">'
                + "".join(f'<joint joint="{j}" coef="{self.numbers(1)}"/>' for j in pair)
                + "</fixed>"
                for k, pair in enumerate(chosen)
            )
            + "</tendon>"
        )

    def equalities(self) -> str:
        """Return random equality constraints."""
        rows = []
        for _ in range(int(self.rng.integers(0, 4))):
            one, two = self.rng.permutation(["world", *self.bodies])[:2]
            first, second = self.rng.permutation(len(self.sites) + 1)[:2] % len(self.sites)
            sites = f'site1="s{first}" site2="s{second}"'
            options = [
                f'<connect body1="{one}" body2="{two}" anchor="{self.numbers(3, 0.3)}"/>',
                f'<weld body1="{one}" body2="{two}" anchor="{self.numbers(3, 0.3)}" '
                f'relpose="{self.numbers(7)}" torquescale=".7"/>',
            ]
            if first != second:
                options += [f"<connect {sites}/>", f'<weld {sites} torquescale="1.3"/>']
            scalars = self.scalars()
            if len(scalars) > 1:
                j1, j2 = self.rng.permutation(scalars)[:2]
                poly = self.numbers(5, 0.3)
                options.append(f'<joint joint1="{j1}" joint2="{j2}" polycoef="{poly}"/>')
                options.append(f'<tendon tendon1="t0" tendon2="t1" polycoef="{poly}"/>')
            rows.append(self.pick(options))
        return f"<equality>{''.join(rows)}</equality>"

    def actuators(self) -> str:
        """Return random actuators on joints, tendons and sites."""
        rows = []
        for _ in range(int(self.rng.integers(0, 5))):
            targets = [f'site="{self.pick(self.sites)}"']
            if len(self.sites) > 1:
                site, reference = self.rng.permutation(self.sites)[:2]
                targets.append(f'site="{site}" refsite="{reference}"')
            if self.joints:
                name = self.pick([name for name, _ in self.joints])
                targets += [f'joint="{name}"', f'jointinparent="{name}"'] * 2
            if len(self.scalars()) > 1:
                targets.append('tendon="t0"')
            dynamics = self.pick(["", "", 'dyntype="filter" dynprm=".3"', 'dyntype="integrator"'])
            limits = 'ctrlrange="-.6 .8" forcerange="-1.2 .9"' if self.chance(0.5) else ""
            rows.append(
                f'<general {self.pick(targets)} gear="{self.numbers(6)}" {dynamics} {limits} '
                f'gainprm="{self.numbers(1)}" biastype="affine" biasprm="{self.numbers(3)}"/>'
            )
        return f"<actuator>{''.join(rows)}</actuator>"


def random_mjcf(seed: int) -> str:
    """Return a random model; the same seed gives the same text."""
    writer = Writer(seed)
    trees = "".join(writer.body(0) for _ in range(int(writer.rng.integers(1, 4))))
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{writer.numbers(3, 5.0)}"/>'
        f"<worldbody>{trees}</worldbody>"
        f"{writer.tendons()}{writer.equalities()}{writer.actuators()}</mujoco>"
    )
