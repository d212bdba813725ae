"""Tables of one machine: cells, the ladder, versions, peaks and claims, made and shown."""
