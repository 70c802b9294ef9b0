"""`adapt partition`: one file a command."""
