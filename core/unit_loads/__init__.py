"""Answers from loads of partitions, subtasks or shards alone, without keys."""
