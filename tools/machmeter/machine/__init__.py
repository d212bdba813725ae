"""Facts about this machine: what the kernel and the driver tell, and who else uses it."""
