"""Plans as an engine takes them: tables, texts and route numbers that place keys on it unpatched."""
