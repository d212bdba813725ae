"""What each page shows: pure functions from what was read to plain values for the templates."""
