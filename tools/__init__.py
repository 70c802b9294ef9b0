"""Documentation generators and layout checks; not part of the package."""
