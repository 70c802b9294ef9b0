"""Chains of operators: description, validation, binding to a trace."""
