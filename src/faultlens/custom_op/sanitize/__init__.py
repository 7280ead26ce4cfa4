"""The ladder of sanitizers: the op is built again with checks in it, and the program is run with that build."""
