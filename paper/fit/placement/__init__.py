"""Placement of operators on nodes, chosen together with the shedding."""
