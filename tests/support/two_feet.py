"""A robot on two feet of points, each on a leg that rolls, pitches and changes its length."""

LEG = """<body name="{name}" pos="0 {y} 0">
  <joint name="{name}_roll" axis="1 0 0" armature=".01"/>
  <joint name="{name}_pitch" axis="0 1 0" armature=".01"/>
  <joint name="{name}_length" type="slide" axis="0 0 1" armature=".1"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".3"/>
  <site name="foot_{name}" pos="0 0 -.3"/></body>"""
JOINTS = ("roll", "pitch", "length")
LEGS = {"left": 0.1, "right": -0.1}
MODEL = f"""<mujoco><option timestep="0.002"/><worldbody><body name="base" pos="0 0 .3"><freejoint/>
<geom type="box" size=".2 .15 .05" mass="4"/>{
    "".join(LEG.format(name=n, y=y) for n, y in LEGS.items())
}
</body></worldbody><actuator>{
    "".join(
        f'<motor joint="{name}_{joint}" ctrlrange="-60 60"/>' for name in LEGS for joint in JOINTS
    )
}</actuator></mujoco>"""

TOE = '<geom name="toe_{0}" size=".01" pos="0 0 -.29"/><site name="foot_{0}"'
FLOOR = '<geom name="floor" type="plane" size="5 5 .1"/>'


def on_floor() -> str:
    """Return the model with a floor, on which it stands at the initial pose."""
    text = MODEL.replace('size=".02" mass=".3"', 'size=".02" mass=".3" contype="0" conaffinity="0"')
    for name in LEGS:
        text = text.replace(f'<site name="foot_{name}"', TOE.format(name))
    return text.replace("<worldbody>", f"<worldbody>{FLOOR}", 1)
