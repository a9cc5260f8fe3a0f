"""Small MJCF models, one for each feature that the equations contain.

`HARD_CASES` agree with MuJoCo in every member; `REFUSED` name the members that are refused.
Numbers are arbitrary on purpose: off-axis, unequal, unsymmetric.
"""

from typing import NamedTuple

from mbcasadi.mjcf.compat import VERSION

LINK = '<inertial pos=".05 -.02 .11" mass="1.3" fullinertia=".012 .02 .015 .001 -.002 .003"/>'
TIP = '<inertial pos="-.03 .04 .07" mass=".6" fullinertia=".004 .003 .005 -.0005 .0002 .0004"/>'


def mjcf(worldbody: str, rest: str = "", option: str = "") -> str:
    """Return a whole MJCF document."""
    return f"<mujoco>{option}<worldbody>{worldbody}</worldbody>{rest}</mujoco>"


def arm(first: str = '<joint name="a" axis="0 1 0"/>', second: str = "") -> str:
    """Return two moving bodies, with sites, and a tilted frame between them."""
    second = second or '<joint name="b" axis="1 .2 0" pos=".01 .02 -.03"/>'
    return (
        f'<site name="base" pos=".3 .1 .2" euler="20 30 -10"/>'
        f'<body name="one" pos=".1 .2 .3" euler="10 -20 35">{first}{LINK}'
        f'<site name="s1" pos=".1 .05 0" euler="15 5 40"/>'
        f'<body name="two" pos="0 .1 .4" euler="-25 10 5">{second}{TIP}'
        f'<site name="s2" pos=".02 0 .2" euler="40 -15 5"/></body></body>'
    )


FREE_BALL = (
    f'<body name="base" pos="0 0 1" euler="0 30 0"><freejoint name="root"/>{LINK}'
    f'<body name="leg" pos=".2 0 0"><joint name="hip" type="ball" pos=".02 .03 -.01"/>{TIP}'
    f'<site name="s1" pos="0 0 .1" euler="10 20 30"/></body></body>'
    f'<body name="post" pos="1 0 0" euler="0 0 40"><site name="s2" pos=".1 .2 .3"/>'
    f'<body name="knob" pos="0 0 .2"><joint name="k" type="slide" axis="1 1 0"/>{TIP}</body></body>'
)

JOINTS = {
    "free and ball joints on two trees": mjcf(FREE_BALL),
    "several joints on one body": mjcf(
        arm(
            '<joint name="x" type="slide" axis="1 0 .3" pos="1 2 3"/>'
            '<joint name="a" axis="0 1 0" pos=".1 0 .2"/>'
            '<joint name="ball" type="ball" pos="-.1 .05 .02"/>'
            '<joint name="y" type="slide" axis="0 1 1"/>',
            '<joint name="b" axis="1 .2 0" pos=".3 -.2 .1"/>'
            '<joint name="c" axis="0 1 .4" pos="-.1 .2 .05"/>'
            '<joint name="d" axis="0 0 1" pos=".07 .1 -.05"/>',
        )
    ),
    "joint ref and springref": mjcf(
        arm(
            '<joint name="a" axis="0 1 0" pos=".1 0 .2" ref="40" springref="-15" stiffness="3"/>',
            '<joint name="b" type="slide" axis="0 1 1" ref=".3" springref=".1" stiffness="7"/>',
        )
    ),
    "ball and free springs": mjcf(
        f'<body name="f" pos="0 0 1" euler="10 20 30"><joint name="root" type="free" '
        f'stiffness="2" damping=".3" armature=".05"/>{LINK}'
        f'<body name="g" pos=".2 0 0"><joint name="hip" type="ball" stiffness="1.5" damping=".2" '
        f'armature=".03"/>{TIP}</body></body>'
    ),
    "polynomial springs and dampers": mjcf(
        f'<body name="f" pos="0 0 1" euler="10 20 30"><joint name="root" type="free" '
        f'stiffness="2 .3 .2" damping=".3 .1 .05"/>{LINK}'
        f'<body name="g" pos=".2 0 0"><joint name="hip" type="ball" stiffness="1.5 -.4 .3" '
        f'damping=".2 .3 .1"/>{TIP}<body name="h" pos=".2 0 0"><joint name="h" axis="1 1 0" '
        f'stiffness="0 .8 .5" damping="0 .4 .2" springref="25"/>{TIP}'
        f"</body></body></body>"
    ),
    "armature and damping": mjcf(
        arm(
            '<joint name="a" axis="0 1 0" armature=".2" damping=".7"/>',
            '<joint name="b" type="slide" armature=".4" damping="1.1"/>',
        )
    ),
    "bodies fixed to the world and to each other": mjcf(
        '<body name="table" pos="0 0 1" euler="0 10 0"><geom size=".1"/><site name="t"/>'
        f'<body name="arm" pos=".1 0 0"><joint name="a" pos=".1 .2 0"/>{LINK}'
        '<body name="rigid" pos="0 .2 0" euler="30 0 0"><geom size=".05" pos=".1 0 0"/>'
        f'<body name="more" pos=".1 .1 0"><site name="s" pos=".1 0 0"/>{TIP}'
        '<body name="tip" pos="0 0 .2"><joint name="b" axis="1 0 0"/><geom size=".05"/></body>'
        "</body></body></body></body>"
    ),
    "small masses and inertias": mjcf(
        '<body name="f"><freejoint/><inertial pos="1e-3 2e-3 0" mass="2e-5" '
        'diaginertia="1e-11 2e-11 1.5e-11"/><body name="w" pos="2e-3 0 0"><joint axis="0 1 0"/>'
        '<inertial pos="0 1e-4 2e-4" mass="1e-7" diaginertia="1e-14 2e-14 1.5e-14"/></body></body>'
    ),
    "tilted gravity": mjcf(arm(), option='<option gravity="3 -4 -7"/>'),
    "gravity compensation": mjcf(
        f'<body name="p" pos="0 0 1" gravcomp=".7"><joint name="a" axis="0 1 0"/>{LINK}'
        f'<body name="r" pos=".1 0 0" gravcomp="2"><geom size=".1" pos="0 0 .2"/>'
        f'<body name="c" pos=".1 .2 0" gravcomp="1.2"><joint name="b" actuatorgravcomp="true" '
        f'actuatorfrcrange="-1 2"/>{TIP}</body></body></body>',
        '<actuator><motor joint="a"/></actuator>',
        '<option gravity="1 2 -9"/>',
    ),
    **{
        f"gravity compensation by actuators, {name}": mjcf(
            f'<body name="p" pos="0 0 1" gravcomp="1"><joint name="a" axis="0 1 0" '
            f'actuatorgravcomp="true" actuatorfrcrange="{bounds}"/>{LINK}<body name="c" '
            f'pos=".1 .2 0" gravcomp=".6"><joint name="b" axis="0 1 .2"/>{TIP}</body></body>',
            actuators,
            option,
        )
        for name, actuators, option, bounds in (
            ("no actuator", "", "", "-1 1"),
            ("no actuator, range without zero", "", "", "1 2"),
            ("one on another joint", '<actuator><motor joint="b"/></actuator>', "", "-1 1"),
            (
                "actuation off",
                '<actuator><motor joint="a"/></actuator>',
                '<option><flag actuation="disable"/></option>',
                "1 2",
            ),
            (
                "group off",
                '<actuator><motor joint="a" group="1"/></actuator>',
                '<option actuatorgroupdisable="1"/>',
                "-1 1",
            ),
            (
                "springs and dampers off",
                '<actuator><motor joint="a"/></actuator>',
                '<option><flag spring="disable" damper="disable"/></option>',
                "-1 1",
            ),
        )
    },
    "mocap body": mjcf(
        arm() + '<body name="target" mocap="true" pos=".4 .2 .1" euler="5 6 7"><site name="m"/>'
        '<body name="grip" pos=".1 0 .2" euler="0 20 0"/></body>',
        '<equality><weld name="drag" body1="two" body2="grip"/>'
        '<connect body1="target" body2="one" anchor=".1 .2 .3"/></equality>',
    ),
}

EQUALITIES = {
    name: mjcf(
        arm()
        + FREE_BALL.replace('"base"', '"trunk"').replace('"s1"', '"s3"').replace('"s2"', '"s4"'),
        f"{tendons}<equality>{equality}</equality>",
    )
    for name, tendons, equality in (
        ("connect to the world", "", '<connect body1="two" anchor=".1 .02 .2"/>'),
        ("connect of two trees", "", '<connect body1="two" body2="leg" anchor=".1 .02 .2"/>'),
        ("connect of two sites", "", '<connect site1="s2" site2="s3"/>'),
        ("connect of a site and the world", "", '<connect site1="s2" site2="base"/>'),
        ("weld to the world", "", '<weld body1="two"/>'),
        (
            "weld with anchor, relpose and torquescale",
            "",
            '<weld body1="leg" body2="two" anchor=".1 .2 .3" relpose=".1 .2 -.1 .9 .1 .3 -.2" '
            'torquescale=".3"/>',
        ),
        ("weld of two sites", "", '<weld site1="s3" site2="s2" torquescale="2.5"/>'),
        ("weld of a site and the world", "", '<weld site1="base" site2="s2"/>'),
        (
            "joint couplings",
            "",
            '<joint joint1="a" joint2="k" polycoef=".1 -.7 .4 .3 -.2"/>'
            '<joint joint1="b" polycoef=".3 1 0 0 0"/>',
        ),
        (
            "tendon couplings",
            '<tendon><fixed name="t1"><joint joint="a" coef="2"/><joint joint="k" coef="-.5"/>'
            '</fixed><fixed name="t2"><joint joint="b" coef=".7"/></fixed></tendon>',
            '<tendon tendon1="t1" tendon2="t2" polycoef=".1 .8 .3 -.2 .4"/>'
            '<tendon tendon1="t2" polycoef=".2 1 0 0 0"/>',
        ),
        (
            "several, one switched off",
            "",
            '<weld body1="leg" body2="one"/><connect body1="two" anchor="0 0 .1" active="false"/>'
            '<joint joint1="a" joint2="b"/><connect body1="knob" body2="two" anchor=".1 0 0"/>',
        ),
        (
            "repeated and empty rows",
            "",
            '<connect body1="two" anchor=".1 0 0"/><connect body1="two" anchor=".1 0 0"/>'
            '<connect body1="post" anchor=".1 0 0"/>',
        ),
    )
}

TENDONS = {
    "joint coupling with ref": mjcf(
        arm('<joint name="a" ref="30"/>', '<joint name="b" type="slide" ref="-.2"/>'),
        '<equality><joint joint1="a" joint2="b" polycoef=".1 .6 .5 -.4 .2"/></equality>',
    ),
    "fixed tendons with spring, dead band, damper and armature": mjcf(
        arm('<joint name="a" ref="30"/>', '<joint name="b" type="slide"/>'),
        '<tendon><fixed name="t1" stiffness="3" damping=".4" armature=".3">'
        '<joint joint="a" coef="1.5"/><joint joint="b" coef="-.8"/></fixed>'
        '<fixed name="t2" stiffness="5" springlength="-.2 .3"><joint joint="b" coef="2"/></fixed>'
        '<fixed name="t3" stiffness="1 .5 .25" damping=".2 .3 .4" springlength=".1">'
        '<joint joint="a" coef=".5"/></fixed></tendon>',
    ),
}


def driven(actuators: str, tendon: str = "", joints: tuple[str, str] = ("", "")) -> str:
    """Return the arm and the floating tree with actuators."""
    world = arm(*joints) + FREE_BALL.replace('"base"', '"trunk"').replace('"s1"', '"s3"').replace(
        '"s2"', '"s4"'
    )
    return mjcf(world, f"{tendon}<actuator>{actuators}</actuator>")


DEFAULT_JOINTS = ('<joint name="a" axis="0 1 0"/>', '<joint name="b" axis="1 .2 0"/>')
TENDON = (
    '<tendon><fixed name="t"{}><joint joint="a" coef="2"/><joint joint="k" coef="-.5"/></fixed>'
    "</tendon>"
)

ACTUATORS = {
    name: driven(actuators, tendon, joints)
    for name, actuators, tendon, joints in (
        (
            "motors with gear",
            '<motor joint="a" gear="3"/><motor joint="k" gear="-2"/>',
            "",
            DEFAULT_JOINTS,
        ),
        (
            "control and force ranges",
            '<motor joint="a" ctrlrange="-1 .5" ctrllimited="true" gear="2"/>'
            '<motor joint="b" forcerange="-.3 .4" forcelimited="true"/>'
            '<general joint="k" ctrlrange="1 2" forcerange=".5 .8" gainprm=".7"/>',
            "",
            DEFAULT_JOINTS,
        ),
        (
            "servos",
            '<position joint="a" kp="20" kv="2" gear="1.5"/><velocity joint="b" kv="3"/>'
            '<position joint="k" kp="30" dampratio=".8" forcerange="-5 5"/>'
            '<damper joint="a" kv="2" ctrlrange="0 3"/>',
            "",
            DEFAULT_JOINTS,
        ),
        (
            "affine gain and bias",
            '<general joint="a" gaintype="affine" gainprm="2 .5 -.3" biastype="affine" '
            'biasprm=".2 -1 .4" gear="1.3"/>',
            "",
            DEFAULT_JOINTS,
        ),
        (
            "ball and free joints",
            '<motor joint="hip" gear="1 -2 .5"/><motor jointinparent="hip" gear=".3 1 2"/>'
            '<motor joint="root" gear="1 2 3 .4 .5 .6"/>'
            '<motor jointinparent="root" gear=".1 .2 .3 4 5 6"/><motor jointinparent="a" gear="2"/>'
            '<general joint="hip" gear="1 .5 -.2" biastype="affine" biasprm=".3 -2 -.4"/>',
            "",
            DEFAULT_JOINTS,
        ),
        (
            "servos on a ball joint",
            '<position joint="hip" kp="3" gear="1 -2 .5"/>'
            '<intvelocity jointinparent="hip" kp="4" gear=".4 0 .3" actrange="-9 9"/>',
            "",
            DEFAULT_JOINTS,
        ),
        (
            "sites",
            '<motor site="s3" gear="1 2 3 .4 .5 .6"/><motor site="s2" gear="0 0 0 1 .5 2"/>'
            '<general site="s3" gear="1 0 2 0 0 0" biastype="affine" biasprm="1 2 -3"/>',
            "",
            DEFAULT_JOINTS,
        ),
        (
            "sites with a reference",
            '<general site="s2" refsite="base" gear="1 2 3 .4 .5 .6" biastype="affine" '
            'biasprm=".3 -2 -.4"/><general site="s2" refsite="s3" gear="1 2 3 0 0 0" '
            'biastype="affine" biasprm=".3 -2 -.4"/>'
            '<general site="s2" refsite="s1" gear=".2 .3 1 .4 .5 .6" biastype="affine" '
            'biasprm=".3 -2 -.4"/>'
            '<position site="s3" refsite="s2" gear="0 0 0 1 .5 2" kp="2"/>',
            "",
            DEFAULT_JOINTS,
        ),
        (
            "fixed tendon",
            '<position tendon="t" kp="10" gear="1.7"/>',
            TENDON.format(""),
            DEFAULT_JOINTS,
        ),
        (
            "force ranges of joints and tendons",
            '<motor tendon="t" gear="2"/><motor tendon="t" forcerange="-.4 .3"/>'
            '<position joint="a" kp="9"/><motor joint="b" gear="4"/>',
            TENDON.format(' actuatorfrcrange="-.5 .6" actuatorfrclimited="true"'),
            (
                '<joint name="a" actuatorfrcrange="-1 .7"/>',
                '<joint name="b" axis="1 .2 0" actuatorfrcrange="-.2 .3"/>',
            ),
        ),
        (
            "armature and damping of actuators",
            '<general joint="a" gear="3" armature=".1" damping=".2 .3 .1"/>'
            '<general joint="a" gear="-2" armature=".05" damping=".1"/>'
            '<general joint="hip" gear="2 3 4" armature=".1" damping=".2 .1 .3"/>'
            '<general joint="root" gear="2 3 4 5 6 7" armature=".1" damping=".2"/>'
            '<general tendon="t" gear="2" armature=".2" damping=".3 .1 .2"/>',
            TENDON.format(' damping=".1 .2 .3" armature=".1"'),
            DEFAULT_JOINTS,
        ),
        (
            "activation states",
            '<general joint="a" dyntype="integrator" actlimited="true" actrange="-.5 .5"/>'
            '<motor joint="k"/>'
            '<general joint="b" dyntype="filter" dynprm=".3" gainprm="2" ctrlrange="-1 1"/>'
            '<general joint="k" dyntype="filterexact" dynprm=".02" biastype="affine" '
            'biasprm="0 -1 -2"/>'
            '<intvelocity joint="b" kp="5" kv="1" actrange="-1 1"/><cylinder joint="k" area="2"/>',
            "",
            DEFAULT_JOINTS,
        ),
    )
}

FLAGS = {
    f"flag {flags}": mjcf(
        arm(
            '<joint name="a" axis="0 1 0" stiffness="3" damping=".5"/>',
            '<joint name="b" axis="1 .2 0" stiffness="2 .5 .3" damping=".4 .2 .1"/>',
        ).replace('name="two"', 'name="two" gravcomp=".6"'),
        '<tendon><fixed name="t" stiffness="3" damping=".4"><joint joint="a" coef="2"/></fixed>'
        '</tendon><equality><connect body1="two" anchor=".1 0 0"/></equality><actuator>'
        '<position joint="a" kp="5" ctrlrange="-.1 .1" forcerange=".2 .5" group="1"/>'
        '<general joint="b" damping=".3" ctrlrange="-.1 .1" group="2"/></actuator>',
        f"<option {groups}><flag {flags}/></option>",
    )
    for flags, groups in (
        ('gravity="disable"', ""),
        ('spring="disable"', ""),
        ('damper="disable"', ""),
        ('spring="disable" damper="disable"', ""),
        ('equality="disable"', ""),
        ('constraint="disable"', ""),
        ('actuation="disable"', ""),
        ('clampctrl="disable"', ""),
        ('energy="enable"', 'actuatorgroupdisable="1"'),
    )
}

BENT = '<joint name="a" axis="0 1 0" range="-90 90" limited="true"/>'
SLIDER = '<site name="rail" pos=".1 .2 .5" euler="20 -30 10"/>'

MUSCLES_AND_MOTORS = {
    "muscles": mjcf(
        arm(BENT),
        """<tendon><fixed name="sinew"><joint joint="a" coef=".03"/></fixed></tendon>
        <actuator>
        <muscle joint="a" gear="-1"/>
        <muscle tendon="sinew" force="300" tausmooth=".2" range=".6 1.2" lengthrange="-.05 .05"/>
        <general joint="a" dyntype="muscle" dynprm=".02 .05 0" gaintype="affine" gainprm="3 1 -.3"
          biastype="muscle" biasprm=".6 1.1 20 1 .5 1.5 1 .8 1.2" lengthrange="-1 1"/>
        <general joint="a" gaintype="muscle" gainprm=".6 1.1 -1 40 .5 1.5 1 .8 1.2"
          lengthrange="-1 1"/>
        </actuator>""",
    ),
    "activation of the next step": mjcf(
        arm(BENT),
        """<actuator>
        <general joint="a" dyntype="integrator" gainprm="30" biastype="affine" biasprm="0 -30 -1"
          actearly="true" actlimited="true" actrange="-1 1"/>
        <general joint="a" dyntype="filterexact" dynprm=".02" gainprm="3" actearly="true"/>
        <general joint="a" dyntype="muscle" dynprm=".02 .05 .1" gaintype="muscle"
          gainprm=".6 1.1 50 1 .5 1.5 1 .8 1.2" lengthrange="-1 1" actearly="true"/>
        </actuator>""",
        option='<option timestep=".004"/>',
    ),
    "motors with winding and cogging": mjcf(
        arm(BENT),
        """<actuator>
        <dcmotor joint="a" resistance="2" motorconst=".1 .2"/>
        <dcmotor joint="a" gear="3" resistance="2" motorconst=".1" inductance="0 .01"
          cogging=".1 6 .2" saturation=".5 0 30"/></actuator>""",
    ),
    "cranks": mjcf(
        arm(BENT) + SLIDER,
        """<actuator><motor cranksite="s2" slidersite="rail" cranklength="2" gear="2"/>
        <position cranksite="s2" slidersite="base" cranklength=".1" gear="-1.5" kp="3" kv=".2"/>
        <motor cranksite="rail" slidersite="s2" cranklength="3"/></actuator>""",
    ),
    "adhesion": mjcf(
        arm(BENT), '<actuator><adhesion body="two" gain="9" ctrlrange="0 1"/></actuator>'
    ),
    "delay": mjcf(arm(BENT), '<actuator><motor joint="a" delay=".01" nsample="20"/></actuator>'),
}

HARD_CASES: dict[str, str] = JOINTS | EQUALITIES | TENDONS | ACTUATORS | MUSCLES_AND_MOTORS | FLAGS


class Refused(NamedTuple):
    """A model, the members that it loses, and words of the message."""

    xml: str
    members: tuple[str, ...]
    words: str


PASSIVE = ("passive_force",)
SPRING = ("passive_force", "potential_energy")
ACTUATION = ("actuation", "actuator_bias", "actuator_force")
CONSTRAINT = ("constraint", "constraint_jacobian", "constraint_bias")

REFUSED: dict[str, Refused] = {
    "fluid": Refused(
        mjcf(arm(), option='<option density="-1.2" viscosity=".1"/>'), PASSIVE, "density"
    ),
    "gain of a callback": Refused(
        mjcf(arm(BENT), '<actuator><general name="g" joint="a" gaintype="user"/></actuator>'),
        ACTUATION,
        "actuator 'g': user gain",
    ),
    "activation of a callback": Refused(
        mjcf(
            arm(BENT),
            '<actuator><general name="g" joint="a" dyntype="user" actdim="2" gainprm="3"/>'
            '<general joint="a" dyntype="filter"/></actuator>',
        ),
        ("act_dot",),
        "actuator 'g': user dynamics",
    ),
    "cloth": Refused(
        mjcf(
            arm() + '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" '
            'mass="1"><edge equality="true"/></flexcomp>'
        ),
        CONSTRAINT,
        "flex",
    ),
}

if VERSION >= (4, 0):
    # Inputs of motors beside the voltage are those of MuJoCo 4.
    REFUSED |= {
        "motor that warms": Refused(
            mjcf(
                arm(BENT),
                '<actuator><dcmotor name="m" joint="a" resistance="2" motorconst=".1" '
                'thermal="2 3 0 .004 25 22" lugre="10 1 .1 .2 .05"/></actuator>',
            ),
            ("actuation", "actuator_bias"),
            "actuator 'm': dcmotor with",
        ),
        "motor with a slew rate": Refused(
            mjcf(
                arm(BENT),
                '<actuator><dcmotor name="m" joint="a" resistance="2" motorconst=".1" input="pos" '
                'controller="3 0 .1 1 0 0"/></actuator>',
            ),
            (*ACTUATION, "act_dot"),
            "actuator 'm': dcmotor with a slew rate",
        ),
    }
