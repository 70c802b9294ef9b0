"""Trace lint: properties of a trace that make results misleading."""
