"""Chains of operators over one ordered stream: run by many workers at once, with the results of a serial run."""
