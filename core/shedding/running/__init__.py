"""A query network that runs: tuples or fluid through operators, with a queue at every node."""
