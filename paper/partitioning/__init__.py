"""Partitioning functions: its claims, Figures 1 and 3 to 14, the ranges of Table 1, and what lies past the paper."""
