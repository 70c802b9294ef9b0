"""How many workers a stage has, and when: thresholds, and the scalers that others have."""
