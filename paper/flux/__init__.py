"""Flux: the stages of the paper's figures, and what they are held against."""
