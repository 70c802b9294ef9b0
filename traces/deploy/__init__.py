"""Deployment: exporting plans, and following them at run time."""
