"""How much memory a Keras model will take: short runs at small batch sizes, and what follows from them."""
