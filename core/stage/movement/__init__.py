"""State transfers: to other workers, to disk and to standby replicas."""
