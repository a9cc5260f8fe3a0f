"""The loop that records: MuJoCo steps the model, the generated C computes the control."""
