"""Room linalg: to be filled."""
