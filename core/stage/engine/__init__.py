"""The compiled engine of the stage, and what is read from it."""
