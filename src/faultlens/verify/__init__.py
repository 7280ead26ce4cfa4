"""Is a saved model whole? Everything that reads foreign bytes is done by processes that may die of it."""
