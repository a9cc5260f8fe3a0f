"""Small MJCF models with spatial tendons, one for each thing that a path can do."""

from support.hard_cases import FREE_BALL, TIP, arm, mjcf

WORLD = (
    '<site name="a" pos="-.5 .1 .3"/><site name="c" pos=".5 -.1 .25"/>'
    '<body name="ball"><freejoint/><geom name="s" size=".2" mass="1"/>'
    '<site name="out" pos="0 0 .4"/><site name="in" pos=".02 0 .03"/>'
    '<body name="drum" pos="0 .3 .1"><joint name="h" axis="1 .2 .3"/>'
    '<geom name="cyl" type="cylinder" size=".1 .2" euler="30 40 0" mass=".5" pos="0 .1 0"/>'
    '<site name="m" pos=".1 .4 .1"/><site name="e" pos="0 .2 .1"/><site name="hub" pos="0 .1 .02"/>'
    "</body></body>"
)


def spatial(name: str, path: str, options: str = 'stiffness="30" damping="2"') -> str:
    """Return one tendon; `s1` is a site, `s:out` a geom with a side site, `/3` a pulley."""
    parts = []
    for word in path.split():
        geom, _, side = word.partition(":")
        if word.startswith("/"):
            parts.append(f'<pulley divisor="{word[1:]}"/>')
        elif geom in ("s", "cyl"):
            parts.append(f'<geom geom="{geom}"' + (f' sidesite="{side}"/>' if side else "/>"))
        else:
            parts.append(f'<site site="{word}"/>')
    return f'<spatial name="{name}" {options}>{"".join(parts)}</spatial>'


WRAPS = {
    "sphere": "a s c",
    "sphere with a side": "a s:out c",
    "inside a sphere": "a s:in c",
    "cylinder": "a cyl c",
    "cylinder with a side": "a cyl:e c",
    "inside a cylinder": "a cyl:hub c",
    "a side that moves against the geom": "a s:e c",
    "pulleys": "a cyl c /3 m cyl:e a /.5 out a",
}
"""Path of each tendon of `WRAPPING`."""

WRAPPING = mjcf(
    WORLD, "<tendon>" + "".join(spatial(name, path) for name, path in WRAPS.items()) + "</tendon>"
)

STRAIGHT = ' stiffness="3 .5 .2" damping=".4 .2" springlength=".1 .2" armature=".3"'
SLACK = 'springlength=".7" stiffness="9"'
ROPES = (
    f"<tendon>{spatial('rope', 'base s1 s2', STRAIGHT)}"
    '<fixed name="f"><joint joint="a" coef="2"/></fixed>'
    f"{spatial('tie', 's1 base /2 base s2', SLACK)}</tendon>"
)

CASES = {
    "springs, dampers and armature": mjcf(arm(), ROPES),
    "armature between branches": mjcf(
        FREE_BALL.replace('name="base"', 'name="trunk"')
        + f'<body pos="1 .2 0"><joint axis="1 2 0"/>{TIP}<site name="s3" pos=".1 .3 .2"/></body>',
        f"<tendon>{spatial('rope', 's1 s3 s2', STRAIGHT)}</tendon>",
    ),
    "actuators": mjcf(
        arm(),
        ROPES + '<actuator><motor tendon="rope" gear="-2"/>'
        '<position tendon="tie" kp="9" kv="2" forcerange="-1 .5"/>'
        '<general tendon="tie" gainprm="2 .3" gaintype="affine" biastype="affine" '
        'biasprm="1 2 3" armature=".2" damping=".3"/><motor tendon="rope" forcerange="-.1 .3"/>'
        "</actuator>",
    ),
    "equalities": mjcf(
        arm(),
        f"{ROPES}<equality>"
        '<tendon tendon1="rope" tendon2="tie" polycoef=".1 .8 .3 -.2 .4"/>'
        '<tendon tendon1="tie" tendon2="f" polycoef="0 .3 .2 0 0"/>'
        '<tendon tendon1="rope" polycoef=".2 1 0 0 0"/></equality>',
    ),
    "wrapping tendon in an equality": mjcf(
        WORLD,
        f"<tendon>{spatial('r', 'a s:out c /2 m cyl e', '')}</tendon>"
        '<equality><tendon tendon1="r"/></equality><actuator><motor tendon="r"/></actuator>',
    ),
    "wraps": WRAPPING,
}
