"""Artefacts on disk, written atomically, each with a manifest."""
