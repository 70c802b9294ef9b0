"""Model of the ordered engine, for any number of workers."""
