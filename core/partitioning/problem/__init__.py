"""What a construction is given: keys to pin, constraints, penalties."""
