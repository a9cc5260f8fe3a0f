"""Published robots in the closed loop of MuJoCo: `python -m robots.<page>` from `tests/`."""
