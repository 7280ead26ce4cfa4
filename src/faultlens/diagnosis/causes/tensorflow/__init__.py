"""TensorFlow's own code"""
