"""Looks at a process or a core file: stacks, symbols, memory, ops in flight."""
