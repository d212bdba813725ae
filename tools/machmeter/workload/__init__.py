"""What is measured: models, cells, their inputs, artifacts, launching and names."""
