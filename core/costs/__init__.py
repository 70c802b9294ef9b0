"""Cost profiles: times of rows, moves, pauses and restarts of a job."""
