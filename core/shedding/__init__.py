"""Load shedding over query networks: the network, its linear program, and the planners that decide what to drop."""
