"""A stage whose consumers are processes."""
