"""Plain numbers that several packages share; no equation is stated here."""

from mbcasadi.description.actuators import Actuator
from mbcasadi.description.constraints import (
    Baumgarte,
    Connect,
    Contact,
    Equality,
    JointCoupling,
    PointRow,
    TendonCoupling,
    Weld,
    Wheel,
)
from mbcasadi.description.controller import (
    Controller,
    Emergency,
    ReportedLimits,
    Signal,
    TuningParameter,
)
from mbcasadi.description.coverage import Coverage, CoverageItem
from mbcasadi.description.fluid import Fluid, FluidBox, FluidEllipsoid
from mbcasadi.description.geoms import CollisionRules, Geom, GeomPair
from mbcasadi.description.qp_stages import LeastDistanceStages
from mbcasadi.description.sensors import Lens, Sensor, SensorFrame
from mbcasadi.description.tendons import (
    FixedTendon,
    PathGeom,
    PathPulley,
    PathSite,
    SpatialTendon,
    Tendon,
)
from mbcasadi.description.tree import Body, Frame, Joint, RigidTree

__all__ = [
    "Actuator",
    "Baumgarte",
    "Body",
    "CollisionRules",
    "Connect",
    "Contact",
    "Controller",
    "Coverage",
    "CoverageItem",
    "Emergency",
    "Equality",
    "FixedTendon",
    "Fluid",
    "FluidBox",
    "FluidEllipsoid",
    "Frame",
    "Geom",
    "GeomPair",
    "Joint",
    "JointCoupling",
    "LeastDistanceStages",
    "Lens",
    "PathGeom",
    "PathPulley",
    "PathSite",
    "PointRow",
    "ReportedLimits",
    "RigidTree",
    "Sensor",
    "SensorFrame",
    "Signal",
    "SpatialTendon",
    "Tendon",
    "TendonCoupling",
    "TuningParameter",
    "Weld",
    "Wheel",
]
