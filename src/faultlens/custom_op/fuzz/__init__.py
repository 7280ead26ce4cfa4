"""`faultlens op test`: fuzzes custom ops in processes that may die of it."""
