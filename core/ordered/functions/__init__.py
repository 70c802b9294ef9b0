"""What operators of a chain compute: each once in plain Python, for the serial run, and once compiled."""
