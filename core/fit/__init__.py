"""FIT: load shedding over a query network."""
