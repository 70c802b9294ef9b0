"""Planners at one place: solver, direct planners, what they share."""
