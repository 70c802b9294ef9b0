"""The ordered runtime among the compared mechanisms."""
