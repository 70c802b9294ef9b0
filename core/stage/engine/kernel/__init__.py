"""Compiled kernel of the stage engine."""
