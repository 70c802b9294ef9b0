"""Figures of the FIT paper, with their claims."""
