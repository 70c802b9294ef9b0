"""Verdict on skew: pin keys, split keys, or choose another key."""
