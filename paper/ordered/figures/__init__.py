"""Figures of the paper on ordered streams, with their claims."""
