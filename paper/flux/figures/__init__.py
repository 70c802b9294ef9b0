"""What is shown of Flux: a file a group of figures, with its claims."""
