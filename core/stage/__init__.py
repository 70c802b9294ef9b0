"""The stage simulator: producers, workers with partitioned state, and a controller."""
