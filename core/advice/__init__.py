"""What can be said before any algorithm runs: how work divides over workers, and how far keys must be split."""
