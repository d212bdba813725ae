"""How values, text of others and tables are written for a reader."""
