"""Plans for any language: text to read line by line, with a reader in Java."""
