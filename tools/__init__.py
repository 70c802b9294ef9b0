"""Generators of the documentation and checks of the layout; not part of the package."""
