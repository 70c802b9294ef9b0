"""One module per part of the page."""
