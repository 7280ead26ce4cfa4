"""`faultlens op sanitize`: the op is built again with checks in it, and the program is run with that build."""
