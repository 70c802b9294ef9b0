"""`adapt replay`: one file a command."""
