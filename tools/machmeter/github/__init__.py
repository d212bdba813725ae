"""What machmeter says on GitHub: one comment per pull request, one issue per regressed group of series."""
