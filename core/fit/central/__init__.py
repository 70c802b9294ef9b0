"""Central planners: a coordinator that plans, and nodes that follow it."""
