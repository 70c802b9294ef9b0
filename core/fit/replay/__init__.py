"""Replays of a trace through a query network that sheds load."""
