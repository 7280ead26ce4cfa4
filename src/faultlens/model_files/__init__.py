"""Saved models and checkpoints, read without TensorFlow: whole or damaged, how large, written by what."""
