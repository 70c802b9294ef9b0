"""Policies that users write, and the checks that show whether one behaves."""
