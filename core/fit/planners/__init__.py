"""Central planners, and what they share."""
