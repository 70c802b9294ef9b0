"""Many scenarios on one trace: where they run, what they read, what is kept."""
