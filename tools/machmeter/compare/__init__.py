"""Base and head of a change compared: what was measured of both, and what may be said about the difference."""
