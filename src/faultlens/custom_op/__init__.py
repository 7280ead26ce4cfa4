"""Custom C++ ops: written, read, fuzzed and sanitized before they crash anybody."""
