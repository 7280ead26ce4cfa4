"""Custom C++ ops: written, read, tortured and sanitized before they crash anybody."""
