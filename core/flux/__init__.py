"""Flux: policies that move the partitions of a stage between its sites."""
