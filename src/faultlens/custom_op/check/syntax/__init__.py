"""C++ sources as trees: what they define and register."""
