"""A stage whose consumers are processes; its producers and controllers are those of the simulator."""
