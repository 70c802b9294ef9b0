"""Replays of a trace through a stage that scales."""
