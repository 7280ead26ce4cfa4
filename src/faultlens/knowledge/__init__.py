"""What is known beforehand: TensorFlow's ops, and crashes of them that were published or tried."""

from faultlens.knowledge.crashes import Known, known_crashes

__all__ = ["Known", "known_crashes"]
