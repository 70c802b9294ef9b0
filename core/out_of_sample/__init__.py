"""Out-of-sample evaluation of plans, by walk-forward over windows."""
