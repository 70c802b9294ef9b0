"""A trace replayed through a chain of operators."""
