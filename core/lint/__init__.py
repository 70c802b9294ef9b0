"""Trace lint: what in a trace makes numbers of this program mean something else than they seem to."""
