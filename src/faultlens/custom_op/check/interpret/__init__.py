"""What a kernel does on each of its paths."""
