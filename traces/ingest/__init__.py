"""Ingest: from raw rows to a trace in time order."""
