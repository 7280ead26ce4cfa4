"""Runs in the Python of the user's programs."""
