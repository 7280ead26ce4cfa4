"""faultlens: the crash doctor for TensorFlow programs and the native Python stack under them."""

__version__ = "0.1.0"
