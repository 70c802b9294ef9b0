"""The linear program of load shedding, and its solvers."""
