"""What `adapt verdict` does by kind of source."""
