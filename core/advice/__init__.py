"""Advice before planning: how work divides over workers, and salts for hot keys."""
