"""Verdict on skew: nothing to do, pin keys, split keys, or choose another key."""
