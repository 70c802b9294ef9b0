"""FIT: load shedding in a query network."""
