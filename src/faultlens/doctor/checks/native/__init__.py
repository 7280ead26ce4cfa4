"""Native libraries: which files the loader would take, and whether they fit each other."""
