"""Rekeying: replacement keys that an engine's own hash places."""
