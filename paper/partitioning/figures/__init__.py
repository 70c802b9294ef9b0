"""What is shown of the experiments: one file a group of figures, with the claims that the paper makes there."""
