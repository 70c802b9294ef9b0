"""How often each key occurs, and which keys are worth tracking."""
