"""Does the real decoder survive the data? Every item is tried in a process that may die."""

from faultlens.data.decode.decoder import Decoder, Verdict
from faultlens.sandbox.warm.worker import Decoding

__all__ = ["Decoder", "Decoding", "Verdict"]
