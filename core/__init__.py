"""Core logic without files, Spark or terminal; time and seeds are arguments."""
