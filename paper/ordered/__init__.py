"""Claims of the paper on ordered streams, tested with the model."""
