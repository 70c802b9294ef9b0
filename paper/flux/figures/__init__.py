"""Figures of the Flux paper, with their claims."""
