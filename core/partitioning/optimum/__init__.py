"""The best that any assignment of the tracked keys reaches."""
