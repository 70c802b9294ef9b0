"""Calibration: what the ordered engine costs on this machine."""
