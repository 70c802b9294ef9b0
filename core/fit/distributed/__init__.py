"""C-FIT and D-FIT: plan tables at a coordinator, or at every node."""
