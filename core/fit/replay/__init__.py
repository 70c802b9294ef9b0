"""A trace replayed through a query network that sheds load."""
