"""How tables are read: charts and the page."""
