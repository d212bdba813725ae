"""Measuring two commits against each other on this machine: what `machmeter pr` does."""
