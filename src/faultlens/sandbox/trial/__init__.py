"""One run of a script in the sandbox, and how it ended."""
