"""The ordered multicore runtime and its model."""
