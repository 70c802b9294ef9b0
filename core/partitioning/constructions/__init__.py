"""Constructions: how a plan chooses its pinned keys and their channels."""
