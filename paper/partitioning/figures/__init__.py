"""Figures of the partitioning paper, with their claims."""
