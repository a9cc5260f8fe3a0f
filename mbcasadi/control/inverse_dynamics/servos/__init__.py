"""What position and velocity servos do during a tick."""
