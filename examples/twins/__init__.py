"""Mechanisms written by hand, as Lagrangians or equations of motion.

Each file has `system(...)`, which returns a `mb.System`, and its parameters as named numbers
with their source. If the same mechanism is in `mujoco_models`, the file also has
`to_mjcf(q)`: the coordinates of the model file as expressions of the twin's own.

Scripts in `examples/` use `from twins import slider_crank`.
"""
