"""What the user types: one file a command, output in one place."""
