"""Any model as an environment of Gymnasium, with a controller underneath.

Needs `pip install "mbcasadi[gym]"`. This import registers the environment of a model and a
controller file, as `gymnasium.make("mbcasadi.environments:mbcasadi/Controlled-v0", ...)` does.
"""

from mbcasadi.environments.controlled_env import ControlledEnv, EnvStep, make_controlled

__all__ = ["ControlledEnv", "EnvStep", "make_controlled"]
