"""Numbers that say how a recorded closed loop went, and the criteria on them."""
