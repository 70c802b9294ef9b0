"""Simulators of a query network, tuple by tuple or as a fluid."""
