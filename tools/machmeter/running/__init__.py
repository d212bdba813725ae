"""Commands that start asv, wait for it and tell what became of it."""
