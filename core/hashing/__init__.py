"""Hash functions over columns of keys, bit for bit those of other implementations."""
