"""Runs in the Python of the user's programs: nothing but the standard library, TensorFlow and Keras is used here."""
