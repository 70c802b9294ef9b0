"""Ingest of plain columns: sorted runs, merged into parts."""
