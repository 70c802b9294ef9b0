"""`adapt lab`: one file a command."""
