"""A stub of Pinocchio's module: it records a tree, and has the inertia of `mass_matrix`."""

from types import SimpleNamespace

import numpy as np

__version__ = "4.0.0"
LOCAL = "local"
ContactType = SimpleNamespace(CONTACT_6D=6, CONTACT_3D=3)
StdVec_RigidConstraintModel = StdVec_RigidConstraintData = list
mass_matrix = None  # (q in MuJoCo's order) → M, of the mechanism that is compared


class SE3:
    """A pose."""

    def __init__(self, R, p):
        assert np.shape(R) == (3, 3)
        assert np.shape(p) == (3,)

    @staticmethod
    def Identity():  # Pinocchio's name
        return SE3(np.eye(3), np.zeros(3))


class Model:
    """Joints, by the names of their models."""

    def __init__(self):
        self.kinds, self.gravity = [], SimpleNamespace()

    def addJoint(self, parent, kind, at, name):
        assert isinstance(at, SE3)
        assert name is not None
        assert parent <= len(self.kinds)
        self.kinds.append(kind)
        return len(self.kinds)

    def appendBodyToJoint(self, joint, inertia, at):
        assert joint <= len(self.kinds)
        assert inertia >= 0
        assert isinstance(at, SE3)

    def createData(self):
        return SimpleNamespace()


def __getattr__(name):
    if not name.startswith("JointModel"):
        raise AttributeError(name)
    return lambda *axis: (name, axis)


def Inertia(mass, com, inertia):
    """Return the mass."""
    assert np.shape(com) == (3,)
    assert np.shape(inertia) == (3, 3)
    return mass


def RigidConstraintModel(kind, model, joint, at, frame):
    """Return a held joint."""
    assert kind in (3, 6)
    assert joint <= len(model.kinds)
    assert isinstance(at, SE3)
    assert frame == LOCAL
    return SimpleNamespace(createData=SimpleNamespace)


def crba(model, data, q):
    """Return M."""
    assert data is not None
    q = np.array(q)
    if model.kinds[0][0] == "JointModelFreeFlyer":
        q[3:7] = q[[6, 3, 4, 5]]
    return np.array(mass_matrix(q))


def initConstraintDynamics(model, data, held, held_data):
    """Do nothing."""
    assert len(held) == len(held_data)


def computeRNEADerivatives(model, data, q, v, a):
    """Do nothing."""
    assert len(v) == len(a)


computeABADerivatives = computeRNEADerivatives  # noqa: N816


def constraintDynamics(model, data, q, v, f, held, held_data):
    """Do nothing."""
    assert len(v) == len(f)
    assert len(held) == len(held_data)


def computeConstraintDynamicsDerivatives(model, data, held, held_data):
    """Do nothing."""
    assert len(held) == len(held_data)
