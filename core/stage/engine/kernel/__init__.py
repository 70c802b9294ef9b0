"""The compiled part of the stage: tuples from producers to workers."""
