"""The source of ops, read with a C++ parser: what it does on each path, and which mistakes that shows."""
