"""Runs in the Python of the user's programs, from 3.9 on."""
