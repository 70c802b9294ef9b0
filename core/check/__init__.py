"""Limits on what artefacts measured: a contract for continuous integration."""
