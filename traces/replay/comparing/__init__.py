"""Many scenarios on one trace."""
