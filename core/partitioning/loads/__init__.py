"""Loads of keys: functions of a count, measured columns, sums."""
