"""Limits of joints, distances, actuators and forces of constraints."""
