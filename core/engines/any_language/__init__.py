"""Plans for any language: a text format, with a reader in Java."""
