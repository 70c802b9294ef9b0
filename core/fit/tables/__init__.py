"""Feasible input tables, built from the leaves to the inputs."""
