"""Ticks of real-time iterations over long horizons, each judged by another solver."""
