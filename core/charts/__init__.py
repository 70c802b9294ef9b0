"""Chart building blocks: axes, bars, points, colors."""
