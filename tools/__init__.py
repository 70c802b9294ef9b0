"""What makes the documentation out of the program; no part of the package."""
