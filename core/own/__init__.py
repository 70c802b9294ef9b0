"""Code that users write for adapt: its name, options and failures."""
