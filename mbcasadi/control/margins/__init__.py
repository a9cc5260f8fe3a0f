"""What sampled loops bear: factors, phases, delays."""
