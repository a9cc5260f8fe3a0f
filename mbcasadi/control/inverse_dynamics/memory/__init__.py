"""What a tick leaves for the next one: disturbances, forces, commands."""
