"""`faultlens op test`: tortures custom ops in processes that may die of it."""
