"""What is shown of FIT: a file a group of figures, with its claims."""
