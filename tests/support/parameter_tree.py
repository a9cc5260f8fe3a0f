"""A mechanism with every kind of number that is a parameter of a body, a joint or a tendon."""

TREE = """
<mujoco>
  <option gravity="0.3 -0.2 -9"/>
  <worldbody>
    <body name="base" pos="0.1 0 1">
      <freejoint name="root"/>
      <site name="on_base" pos="0.3 0.1 0.1"/>
      <inertial pos="0.01 0.02 0.03" mass="3" fullinertia="0.3 0.2 0.25 0.01 0.02 -0.01"/>
      <body name="upper" pos="0.2 0 0" quat="0.9 0.1 0.3 0.2" gravcomp="0.3">
        <joint name="shoulder" axis="0 1 0.2" pos="0.1 0 0" damping="0.4 0.2" stiffness="2"
               armature="0.05"/>
        <inertial pos="0 0.1 0.2" mass="1.2" diaginertia="0.02 0.03 0.04"/>
        <body name="fore" pos="0 0 0.4">
          <joint name="elbow" axis="1 0 0" ref="0.2" armature="0.02"/>
          <joint name="twist" axis="0.2 1 1" damping="0.1"/>
          <site name="on_fore" pos="0.1 0 0.2"/>
          <geom size="0.05 0.2" type="capsule" pos="0 0 0.2" mass="0.7"/>
          <body name="fixed" pos="0.1 0 0.3" euler="20 30 40" gravcomp="0.8">
            <geom size="0.04" mass="0.2"/>
          </body>
        </body>
      </body>
      <body name="slider" pos="-0.2 0 0">
        <joint name="slide" type="slide" axis="1 0.5 0" damping="3"/>
        <geom size="0.05 0.06 0.07" type="box" mass="0.5"/>
        <body name="ball" pos="0 0 0.2">
          <joint name="ball" type="ball" pos="0.01 0.02 0" damping="0.1" stiffness="0.3"/>
          <inertial pos="0.1 0.02 0.1" mass="0.6" diaginertia="0.01 0.02 0.025"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="cable" stiffness="4" damping="0.2" armature="0.01">
      <joint joint="shoulder" coef="0.5"/><joint joint="elbow" coef="-0.3"/>
    </fixed>
  </tendon>
</mujoco>
"""
