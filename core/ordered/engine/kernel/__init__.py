"""The compiled worker of the ordered engine, one concept a file."""
