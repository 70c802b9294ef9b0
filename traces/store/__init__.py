"""Artefacts on disk: whole or absent, each with a manifest that says how it was made."""
