"""The claims of the papers, measured: `python -m paper` makes one page of them, with its numbers as JSON and CSV."""
