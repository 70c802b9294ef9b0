"""Inputs of a stage: settings, arrivals, faults, disturbances and shedding."""
