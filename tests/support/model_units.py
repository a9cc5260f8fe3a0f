"""A compiled MuJoCo model in other units, number by number.

Controls keep their numbers (set-points and activations too; a control that is a rate changes with
the second). Tendons keep their lengths' numbers. Not converted, for they have no unit of their own:
springs of free joints, and armature of actuators on them.
"""

import copy

import mujoco
import numpy as np

FREE, SLIDE = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_SLIDE)
LENGTHS = {SLIDE: 1, FREE: 3}  # coordinates of each kind of joint that are lengths
CONNECT, WELD = int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)
COUPLING, OF_TENDONS = int(mujoco.mjtEq.mjEQ_JOINT), int(mujoco.mjtEq.mjEQ_TENDON)
ON_SITE = int(mujoco.mjtTrn.mjTRN_SITE)
ON_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
FIXED, INTEGRATOR = int(mujoco.mjtDyn.mjDYN_NONE), int(mujoco.mjtDyn.mjDYN_INTEGRATOR)
WRAPS_JOINT = int(mujoco.mjtWrap.mjWRAP_JOINT)

# MuJoCo takes offsets of less than a millionth of the unit of length for zero
OFFSETS_THAT_COUNT = ("body_sameframe", "body_simple", "site_sameframe")


def in_units(model, u):
    """Return a copy of the model in units `support.unit_systems.Units`."""
    new = copy.copy(model)
    for name in ("body_pos", "body_ipos", "jnt_pos", "site_pos"):
        getattr(new, name)[:] *= u.m
    new.body_mass[:] *= u.kg
    new.body_inertia[:] *= u.kg * u.m**2
    new.opt.gravity *= u.m / u.s**2
    size = coordinate_sizes(model, u)
    _convert_joints(new, u, size)
    _convert_tendons(new, u, size)
    _convert_equalities(new, u, size)
    _convert_actuators(new, u)
    mujoco.mj_setConst(new, mujoco.MjData(new))
    new.stat.extent = model.stat.extent * u.m  # of geoms, which are not converted
    for name in OFFSETS_THAT_COUNT:
        getattr(new, name)[:] = getattr(model, name)
    return new


def coordinate_sizes(model, u):
    """Return (nv,) new units of each coordinate."""
    size = np.ones(model.nv)
    for i in range(model.njnt):
        first = model.jnt_dofadr[i]
        count = LENGTHS.get(int(model.jnt_type[i]), 0)
        size[first : first + count] = u.m
    return size


def configuration_in(model, q, u):
    """Return q in the new units."""
    q = np.array(q)
    for i in range(model.njnt):
        first = model.jnt_qposadr[i]
        count = LENGTHS.get(int(model.jnt_type[i]), 0)
        q[first : first + count] *= u.m
    return q


def _convert_joints(new, u, size):
    new.qpos0[:] = configuration_in(new, new.qpos0, u)
    new.qpos_spring[:] = configuration_in(new, new.qpos_spring, u)
    new.dof_armature[:] *= u.kg * u.m**2 / size**2
    new.dof_damping[:] *= u.torque * u.s / size**2
    for n in range(new.dof_dampingpoly.shape[1]):
        new.dof_dampingpoly[:, n] *= u.torque / size * (u.s / size) ** (n + 2)
    for i in range(new.njnt):
        x = size[new.jnt_dofadr[i]]
        assert new.jnt_stiffness[i] == 0 or new.jnt_type[i] != FREE
        new.jnt_stiffness[i] *= u.torque / x**2
        for n in range(new.jnt_stiffnesspoly.shape[1]):
            new.jnt_stiffnesspoly[i, n] *= u.torque / x ** (n + 3)
        new.jnt_actfrcrange[i] *= u.torque / x


def _convert_tendons(new, u, size):
    for i in range(new.nwrap):
        assert new.wrap_type[i] == WRAPS_JOINT
        new.wrap_prm[i] /= size[new.jnt_dofadr[new.wrap_objid[i]]]
    new.tendon_armature[:] *= u.kg * u.m**2
    new.tendon_stiffness[:] *= u.torque
    new.tendon_damping[:] *= u.torque * u.s
    new.tendon_stiffnesspoly[:] *= u.torque
    for n in range(new.tendon_dampingpoly.shape[1]):
        new.tendon_dampingpoly[:, n] *= u.torque * u.s ** (n + 2)
    new.tendon_actfrcrange[:] *= u.torque


def _convert_equalities(new, u, size):
    for i in range(new.neq):
        kind, data = new.eq_type[i], new.eq_data[i]
        if kind in (CONNECT, WELD):
            data[:6] *= u.m
        elif kind == COUPLING:
            first = size[new.jnt_dofadr[new.eq_obj1id[i]]]
            other = new.eq_obj2id[i]
            second = size[new.jnt_dofadr[other]] if other >= 0 else 1.0
            data[:5] *= first / second ** np.arange(5)
        else:
            assert kind == OF_TENDONS


def _convert_actuators(new, u):
    for i in range(new.nu):
        kind, target = new.actuator_trntype[i], new.actuator_trnid[i, 0]
        joint = kind in ON_JOINT
        slides = joint and new.jnt_type[target] == SLIDE
        if kind == ON_SITE or (joint and new.jnt_type[target] == FREE):
            new.actuator_gear[i, :3] /= u.m
        length = u.m if slides else 1.0
        force = u.torque / length
        powers = np.array([1.0, 1 / length, u.s / length])
        new.actuator_gainprm[i, :3] *= force * powers
        new.actuator_biasprm[i, :3] *= force * powers
        new.actuator_forcerange[i] *= force
        assert new.actuator_armature[i] == new.actuator_damping[i] == 0
        if new.actuator_dyntype[i] == INTEGRATOR:
            new.actuator_ctrlrange[i] /= u.s
        elif new.actuator_dyntype[i] != FIXED:
            new.actuator_dynprm[i, 0] *= u.s
