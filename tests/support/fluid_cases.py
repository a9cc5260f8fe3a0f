"""Models in a medium: every shape, joint and option that its forces depend on."""

from support.hard_cases import LINK, TIP, mjcf

MEDIUM = '<option density="800" viscosity=".3" wind="1.3 -.7 .4">{}</option>'
AIR = '<option density="1.2" viscosity="1.8e-5"/>'

BOXES = (
    f'<body name="base" pos="0 0 1" euler="0 30 0"><freejoint/>{LINK}'
    f'<body name="arm" pos=".2 0 0" euler="10 0 25"><joint type="ball" pos=".02 .03 -.01"/>{TIP}'
    '<body name="plate" pos=".1 .1 0"><joint axis="1 2 .3" pos=".03 0 .01" ref="20"/>'
    '<inertial pos=".01 .02 .03" mass=".4" diaginertia=".002 .003 .005"/>'
    '<body name="fixed tip" pos="0 .1 .2" euler="5 6 7">'
    '<geom type="box" size=".02 .05 .03" pos=".01 0 .02" euler="30 20 10"/></body>'
    '<body name="nothing" pos="0 0 .1"><site/></body></body></body></body>'
    '<body name="rail" euler="0 20 0"><joint type="slide" axis="0 1 1" pos="1 0 0" ref=".1"/>'
    '<joint axis="1 0 .2" pos=".1 .2 0"/><geom type="capsule" size=".05 .2" pos=".1 0 .1"/></body>'
    '<body name="post" pos="2 0 0"><geom size=".1"/></body>'
    '<body name="guide" mocap="true"><geom size=".1"/></body>'
)

SHAPES = {
    "sphere": 'type="sphere" size=".11"',
    "capsule": 'type="capsule" size=".05 .12"',
    "ellipsoid": 'type="ellipsoid" size=".1 .16 .07"',
    "cylinder": 'type="cylinder" size=".07 .03"',
    "box": 'type="box" size=".05 .12 .08"',
    "wing": 'type="box" size=".025 .01 .0001"',
}


def ellipsoid(shape: str, coefficients: str = "0.5 0.25 1.5 1.0 1.0") -> str:
    """Return a geom that meets the medium as an ellipsoid, off the body's axes."""
    return (
        f'<geom name="{shape.split(chr(34))[1]}" {shape} pos=".04 -.02 .03" euler="15 -25 35" '
        f'fluidshape="ellipsoid" fluidcoef="{coefficients}"/>'
    )


def swimmer(shape: str, coefficients: str = "0.5 0.25 1.5 1.0 1.0") -> str:
    """Return a free body, and a tail that carries the shape next to a geom that counts not."""
    return (
        f'<body name="trunk" pos="0 0 1"><freejoint/>{LINK}'
        f'<body name="tail" pos=".2 0 0"><joint axis="0 1 .3" pos=".01 0 .02"/>'
        f'{ellipsoid(shape, coefficients)}<geom type="box" size=".1 .2 .05" pos="0 0 .3"/>'
        "</body></body>"
    )


TERMS = ("1 0 0 0 0", "0 1 0 0 0", "0 0 1 0 0", "0 0 0 1 0", "0 0 0 0 1", "0 0 0 0 0")
"""Blunt, slender and angular drag, Kutta, Magnus; added mass alone."""

FLUID_CASES = {
    "boxes": mjcf(BOXES, option=MEDIUM.format("")),
    "boxes in air": mjcf(BOXES, option=AIR),
    "boxes without viscosity": mjcf(BOXES, option='<option density="7" wind="0 0 1"/>'),
    "boxes without density": mjcf(BOXES, option='<option viscosity=".7" wind="0 0 1"/>'),
    "two ellipsoids on one body": mjcf(
        f'<body name="fish"><freejoint/>{ellipsoid(SHAPES["box"])}<body name="head" pos=".1 0 0">'
        f'<joint axis="0 1 0"/>{ellipsoid(SHAPES["sphere"])}{ellipsoid(SHAPES["capsule"])}'
        '<geom size=".03" pos="0 .1 0"/></body></body>',
        option=MEDIUM.format(""),
    ),
    **{shape: mjcf(swimmer(xml), option=MEDIUM.format("")) for shape, xml in SHAPES.items()},
    **{
        f"fluidcoef {terms}": mjcf(swimmer(SHAPES["ellipsoid"], terms), option=MEDIUM.format(""))
        for terms in TERMS
    },
    **{
        f"fluid, {flags}": mjcf(swimmer(SHAPES["box"]), option=MEDIUM.format(f"<flag {flags}/>"))
        for flags in (
            'spring="disable"',
            'damper="disable"',
            'spring="disable" damper="disable"',
            'gravity="disable"',
        )
    },
}
