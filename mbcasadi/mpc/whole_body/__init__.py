"""MPC of a whole mechanism: parts, references of a gait, and the two rates."""
