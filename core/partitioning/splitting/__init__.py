"""Key splitting: tuples of one key go to several channels, whose partial results are merged afterwards."""
