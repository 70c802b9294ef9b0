"""Feasible input tables: made at the leaves, mapped back and merged towards the inputs, looked up by rates."""
