"""Machmeter: continuous benchmarks of deep-learning inference, built on airspeed velocity (asv)."""

__version__ = "0.1.0"
