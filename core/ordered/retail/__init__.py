"""Chains over retail streams."""
