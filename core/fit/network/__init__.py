"""Query networks: operators, nodes, links, and their arrays."""
