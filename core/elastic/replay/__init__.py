"""A trace replayed through a stage whose workers come and go."""
