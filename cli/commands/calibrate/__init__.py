"""`adapt calibrate`: cost profiles from measurements."""
