"""Functions of operators, each in plain Python and compiled."""
