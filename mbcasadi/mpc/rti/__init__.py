"""Real-time iteration: one Gauss-Newton step of an optimal control problem at each tick."""
