"""Feasible input tables: made at leaves, mapped back and merged towards the inputs."""
