"""Check metrics of artefacts against limits, for continuous integration."""
