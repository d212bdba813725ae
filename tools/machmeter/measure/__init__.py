"""How one process measures one cell, and what it puts on record."""
