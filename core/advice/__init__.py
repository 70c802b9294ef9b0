"""Advice before planning: division of work, salts for hot keys."""
