"""The engine: workers on threads, in compiled code."""
