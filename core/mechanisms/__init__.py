"""Mechanisms of all systems compared on one trace."""
