"""Schemes whose pinned keys follow from the counts alone."""
