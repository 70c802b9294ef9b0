"""C-FIT and D-FIT: who makes which table, and what nodes tell each other."""
