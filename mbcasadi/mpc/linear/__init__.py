"""Linear MPC: condensed when it is built, or with states and multipliers as unknowns."""
