"""Reading what asv and the evidence hold. Nothing here writes."""
