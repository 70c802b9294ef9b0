"""Parts of charts: axes, bars, points, colors."""
