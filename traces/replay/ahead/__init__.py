"""What is known of a replay before it starts: its speed, and how long it takes."""
