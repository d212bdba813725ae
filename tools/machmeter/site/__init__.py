"""The history site: pages as pure functions of what was read, and the build that writes them."""
