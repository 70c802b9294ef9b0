"""Records of the compiled stage engine."""
