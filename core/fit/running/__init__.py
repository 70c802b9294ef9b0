"""A query network that runs: tuples or fluid through operators, with windows and queues."""
