"""From a crash to its cause: evidence, causes, and how they are ranked."""
