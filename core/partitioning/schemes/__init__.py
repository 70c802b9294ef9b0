"""Hash schemes: how a key becomes a channel."""
