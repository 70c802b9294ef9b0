"""The linear program of shedding, and what solves it."""
