"""The compiled engine of the stage and its time series."""
