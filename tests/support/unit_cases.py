"""Models for comparisons in other units: `support.model_units` converts every number of them."""

from support.hard_cases import ACTUATORS, EQUALITIES, HARD_CASES, JOINTS, TENDONS, arm, mjcf

WITHOUT_GRAVITY = '<option gravity="0 0 0"/>'
CASES = {
    "free and ball joints": JOINTS["free and ball joints on two trees"],
    "several joints": JOINTS["several joints on one body"],
    "springs": JOINTS["joint ref and springref"],
    "armature": JOINTS["armature and damping"],
    "weld": EQUALITIES["weld with anchor, relpose and torquescale"],
    "joint couplings": EQUALITIES["joint couplings"],
    "tendon couplings": EQUALITIES["tendon couplings"],
    "repeated and empty rows": EQUALITIES["repeated and empty rows"],
    "tendons": TENDONS["fixed tendons with spring, dead band, damper and armature"],
    "sites": ACTUATORS["sites"],
    "servos on a ball joint": ACTUATORS["servos on a ball joint"],
    "activation states": ACTUATORS["activation states"],
    "ranges": ACTUATORS["force ranges of joints and tendons"],
    "compensation": HARD_CASES["gravity compensation"],
    "no gravity": mjcf(arm(), option=WITHOUT_GRAVITY),
    "no gravity, servo": mjcf(
        arm('<joint name="a" axis="0 1 0" damping=".3"/>', '<joint name="b" type="slide"/>'),
        '<actuator><position joint="b" kp="20" kv="2"/><motor joint="a" ctrlrange="-2 3"/>'
        "</actuator>",
        WITHOUT_GRAVITY,
    ),
    "no gravity, dampers": mjcf(
        arm('<joint name="a" axis="0 1 0" damping=".3"/>', '<joint name="b" damping="2"/>'),
        '<actuator><motor joint="a"/></actuator>',
        WITHOUT_GRAVITY,
    ),
    "linear rows": mjcf(
        '<body><joint name="a" type="slide"/><geom size=".1"/></body>'
        '<body pos="1 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>',
        '<equality><joint joint1="a" joint2="b" polycoef="0 .3 0 0 0"/></equality>',
        WITHOUT_GRAVITY,
    ),
    "anchor on the axis": mjcf(  # its rows hold rounding errors only
        arm(), '<equality><connect body1="two" body2="one" anchor=".01 .02 -.03"/></equality>'
    ),
    "slides only": mjcf(
        '<body><joint type="slide" stiffness="7"/><geom size=".1" mass="2"/>'
        '<body><joint type="slide" axis="1 1 0"/><geom size=".1" mass="1"/></body></body>'
    ),
}
