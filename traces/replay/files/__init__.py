"""Files that a replay reads besides its trace."""
