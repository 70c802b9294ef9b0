"""Plans deployed: exported folders, and what follows them at run time."""
