"""Packages: do TensorFlow and what it is built on fit each other?"""
