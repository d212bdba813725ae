"""The machines that measure for a project, and the jobs of its workflows."""
