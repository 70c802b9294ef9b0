"""Terminal output: tables, progress, help."""
