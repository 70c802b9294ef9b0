"""Processes of a stage on this machine, reached over loopback sockets."""
