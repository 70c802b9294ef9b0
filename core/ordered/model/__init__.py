"""The model of the engine, for any number of workers."""
