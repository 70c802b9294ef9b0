"""What is shown of ordered streams: a file a figure, with its claims."""
