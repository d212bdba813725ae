"""The history of any asv results store, read strictly: series over commits, what changed around them, exports."""
