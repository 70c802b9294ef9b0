"""What a terminal shows: tables, progress, help, failures."""
