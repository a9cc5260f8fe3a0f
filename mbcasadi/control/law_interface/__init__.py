"""What control laws and regulators share: data, entry point, mechanism at a state."""
