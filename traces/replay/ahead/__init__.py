"""Before a replay starts: its speed, and how long it takes."""
