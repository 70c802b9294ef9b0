"""What charts are made of: axes, bars, points, colours."""
