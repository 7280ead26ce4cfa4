"""A warm Python that forks processes which may die, and what they died of."""
