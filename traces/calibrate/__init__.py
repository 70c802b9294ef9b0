"""Sources of cost profiles."""
