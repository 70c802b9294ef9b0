"""Loads of partitions, subtasks, tasks and shards, as monitoring shows them."""
