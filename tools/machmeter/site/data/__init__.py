"""What the site exports as data: JSON with schemas, badges."""
