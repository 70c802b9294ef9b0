"""Claims of the papers, measured and written as one page."""
