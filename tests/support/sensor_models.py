"""Hand-made MJCF with sensors, states of MuJoCo, and what sensors read there."""

import mujoco
import numpy as np

from mbcasadi.plant import external_wrenches, solver_readings

EVERY_SENSOR = """
<mujoco model="every sensor">
  <option gravity="1 -2 -9" magnetic=".1 -.5 .2" timestep=".001"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" pos="0 0 -.6"/>
    <site name="on_world" pos=".3 .2 .5" euler="20 30 40"/>
    <camera name="fixed" pos="2 1 3" euler="10 20 30" resolution="64 48" sensorsize=".01 .02"
      focal=".02 .03"/>
    <body name="shelf" pos="0 2 1"><geom size=".1" mass="1"/>
    <site name="on_shelf" euler="5 6 7"/></body>
    <body name="trunk" pos="0 0 .2">
      <freejoint name="float"/>
      <geom name="box" size=".2 .3 .4" type="box" mass="2"/>
      <site name="imu" pos=".1 .2 .3" euler="10 -30 60"/>
      <site name="zone" type="box" size=".3 .4 .3" pos="0 0 -.2"/>
      <camera name="eye" pos=".2 0 .1" euler="40 10 -20" fovy="50" resolution="64 48"/>
      <body name="head" pos="0 0 .5" euler="10 20 30"><geom size=".1" mass=".5"/>
      <site name="on_head" pos=".1 .1 0" euler="1 2 3"/></body>
      <body name="arm" pos=".4 .1 .2" euler="10 20 30" gravcomp=".3">
        <joint name="shoulder" type="ball" damping="1" stiffness="3"/>
        <geom size=".1 .2 .1" type="box" pos=".1 .1 .1" mass="1"/>
        <site name="wrist" pos=".1 -.2 .3" euler="50 -30 60"/>
        <body name="hand" pos=".2 .3 .1" euler="30 0 20">
          <joint name="turn" limited="true" range="-90 90" axis="1 2 0" pos=".1 0 0"/>
          <joint name="slide" type="slide" axis="0 1 1"/>
          <geom name="palm" size=".1 .15" type="capsule" mass=".7" pos="0 .1 .1"/>
          <site name="tip" pos="0 .2 .1"/>
        </body>
      </body>
    </body>
    <body name="pole" pos="1 1 0"><joint name="hip" axis="0 1 0" armature=".1" stiffness="2"/>
    <geom type="capsule" fromto="0 0 0 0 0 1" size=".05"/>
      <body name="rod" pos="0 0 1"><joint name="knee" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .8 0 0" size=".05"/><site name="rod_tip" pos=".8 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="cable" stiffness="3" limited="true" range="-1 1">
  <joint joint="hip" coef="1"/><joint joint="knee" coef="-.7"/></fixed>
  <spatial name="rope" stiffness="40" damping="3" limited="true" range="0 .5" frictionloss=".4">
  <site site="rod_tip"/><site site="tip"/></spatial></tendon>
  <equality>
    <connect name="pin" body1="rod" anchor=".8 0 0"/>
    <weld name="glue" body1="hand" body2="pole" torquescale=".7"/>
    <connect name="sites" site1="rod_tip" site2="tip"/>
    <joint name="gear" joint1="hip" joint2="knee" polycoef="0 .5 .1 0 0"/>
  </equality>
  <actuator>
    <motor name="pull" tendon="cable" gear="2" forcerange="-3 3"/>
    <position name="servo" joint="turn" kp="20" kv="2"/>
    <general name="slow" joint="turn" dyntype="filter" dynprm=".1" gainprm="5"/>
    <motor name="thrust" site="tip" gear="1 2 3 .1 .2 .3"/>
    <motor name="winch" tendon="rope" gear="-3"/>
  </actuator>
  <sensor>
    <accelerometer site="imu"/><velocimeter site="imu"/><gyro site="imu"/>
    <magnetometer site="imu"/>
    <accelerometer name="still" site="on_world"/>
    <framelinacc name="still2" objtype="site" objname="on_shelf"/>
    <frameangacc name="still3" objtype="site" objname="on_shelf"/>
    <force site="wrist"/><torque site="wrist"/><force site="imu"/><torque site="imu"/>
    <force site="tip"/><torque site="tip"/>
    <force site="on_head"/><torque site="on_head"/><force site="on_world"/>
    <torque name="world_torque" site="on_world"/><force site="on_shelf"/><torque site="on_shelf"/>
    <force site="rod_tip"/><torque site="rod_tip"/>
    <camprojection site="tip" camera="fixed"/><camprojection site="wrist" camera="eye"/>
    <jointpos joint="turn"/><jointvel joint="slide"/><ballquat joint="shoulder"/>
    <ballangvel joint="shoulder"/>
    <tendonpos tendon="cable"/><tendonvel tendon="cable"/><tendonactuatorfrc tendon="cable"/>
    <tendonpos tendon="rope"/><tendonvel tendon="rope"/>
    <actuatorpos actuator="pull"/><actuatorvel actuator="servo"/><actuatorfrc actuator="pull"/>
    <actuatorfrc actuator="slow"/><actuatorfrc actuator="thrust"/>
    <jointactuatorfrc joint="turn"/>
    <framepos objtype="body" objname="hand"/>
    <framepos objtype="xbody" objname="hand" reftype="site" refname="imu"/>
    <framequat objtype="geom" objname="palm"/>
    <framequat objtype="body" objname="arm" reftype="camera" refname="eye"/>
    <framequat objtype="camera" objname="eye"/>
    <framexaxis objtype="geom" objname="palm"/>
    <frameyaxis objtype="site" objname="tip" reftype="body" refname="arm"/>
    <framezaxis objtype="camera" objname="eye"/>
    <framelinvel objtype="body" objname="hand"/>
    <framelinvel objtype="site" objname="tip" reftype="xbody" refname="pole"/>
    <frameangvel objtype="geom" objname="palm"/>
    <frameangvel objtype="xbody" objname="hand" reftype="geom" refname="box"/>
    <framelinacc objtype="body" objname="hand"/><framelinacc objtype="camera" objname="eye"/>
    <frameangacc objtype="geom" objname="palm"/>
    <subtreecom body="trunk"/><subtreecom body="world"/><subtreelinvel body="trunk"/>
    <subtreelinvel body="world"/><subtreeangmom body="trunk"/><subtreeangmom body="arm"/>
    <subtreeangmom body="world"/><subtreecom body="shelf"/>
    <e_potential/><e_kinetic/><clock/>
    <jointpos name="cut" joint="turn" cutoff=".1"/>
    <accelerometer name="cut3" site="imu" cutoff="4"/><force name="cutf" site="wrist" cutoff="8"/>
    <touch site="tip"/><rangefinder site="tip"/><jointlimitpos joint="turn"/>
    <tendonlimitfrc tendon="cable"/><jointlimitvel joint="turn"/><jointlimitfrc joint="turn"/>
    <tendonlimitpos tendon="cable"/><tendonlimitvel tendon="cable"/><touch site="zone"/>
    <touch site="zone" cutoff="3"/>
    <insidesite site="imu" objtype="body" objname="hand"/>
    <distance name="dist" geom1="palm" geom2="floor" cutoff="1"/>
    <contact name="con" geom1="palm" num="1"/>
  </sensor>
</mujoco>
"""
"""A free trunk with an arm, a loop of three kinds, contacts, and sensors of all kinds."""

LOOP = """
<mujoco model="sensed four-bar">
  <option timestep=".001"/>
  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 1 0 0" size=".05"/>
      <site name="on_crank" pos=".5 0 0" euler="10 20 30"/>
      <body name="coupler" pos="1 0 0">
        <joint name="coupler" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -1" size=".05"/>
        <site name="on_coupler"/>
        <body name="rocker" pos="0 0 -1">
          <joint name="rocker" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 -1 0 .3" size=".05"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><connect name="pin" body1="rocker" body2="world" anchor="-1 0 .3"/></equality>
  <actuator><motor name="motor" joint="crank" gear="5"/></actuator>
  <sensor>
    <force name="force" site="on_crank"/><torque name="torque" site="on_crank"/>
    <accelerometer name="felt" site="on_coupler"/><gyro name="turning" site="on_coupler"/>
    <actuatorfrc name="drive" actuator="motor"/><jointlimitpos name="end" joint="crank"/>
  </sensor>
</mujoco>
""".replace('damping=".1"/>', 'damping=".1" limited="true" range="-170 170"/>')


def wild_state(model: mujoco.MjModel, rng: np.random.Generator) -> mujoco.MjData:
    """Return an evaluated random state with pushes on all bodies and joints."""
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, 0.5 * rng.normal(size=model.nv), 1.0)
    data.qvel = rng.normal(size=model.nv)
    data.ctrl, data.act = rng.normal(size=model.nu), rng.normal(size=model.na)
    data.qfrc_applied = rng.normal(size=model.nv)
    data.xfrc_applied[1:] = rng.normal(size=(model.nbody - 1, 6))
    data.time = float(rng.random())
    mujoco.mj_forward(model, data)
    return data


def sensed(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, object]:
    """Return the inputs of sensor Functions, by name, from MuJoCo's own numbers."""
    return {
        "q": data.qpos,
        "v": data.qvel,
        "a": data.qacc,
        "u": data.ctrl,
        "act": data.act,
        "wrenches": external_wrenches(model, data),
        "solver": solver_readings(model, data),
        "t": data.time,
    }
