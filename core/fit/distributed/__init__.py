"""C-FIT and D-FIT: feasible input tables made, sent and merged between nodes."""
