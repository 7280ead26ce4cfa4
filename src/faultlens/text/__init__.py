"""Words: safe to print, sizes, names of files, secrets and what takes their place."""
