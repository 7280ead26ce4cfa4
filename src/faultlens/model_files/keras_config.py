"""The configuration of a Keras model: what in it only Keras 3 understands."""

from __future__ import annotations

# In models of Keras 3, each refused by Keras 2.12 and 2.15. A model that has none of them may be read by Keras 2.
NEW_IN_3 = ('"batch_shape"', '"DTypePolicy"', '"keras.src.models.')


def new_in_3(config: str) -> str:
    """The first word that Keras 2 stumbles over; empty where there is none."""
    return next((word.strip('".') for word in NEW_IN_3 if word in config), "")
