"""A DAG of stages over shared workers."""
