"""What sampled loops tolerate: factors, phases, delays."""
