"""What a robot is, from its model: kind, limbs, feet, tools, sides.

>>> import mbcasadi as mb
>>> robot = mb.describe(mb.read_mjcf("robot.xml"))
>>> print(robot.text)
"""

from mbcasadi.anatomy.describe import describe
from mbcasadi.anatomy.feet import RobotFoot
from mbcasadi.anatomy.robot import RobotDescription, RobotLimb, RobotTool

__all__ = ["RobotDescription", "RobotFoot", "RobotLimb", "RobotTool", "describe"]
