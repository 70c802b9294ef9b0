"""A trace replayed through a stage under policies of Flux."""
