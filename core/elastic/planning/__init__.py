"""Schedules of workers planned by their cost: offline optimum, receding horizon."""
