"""Classes and functions of users: found, and checked in this process."""
