"""Does the real decoder survive the data? Every item is tried in a process that may die."""

from faultlens.data.decode.decoder import Decoder, Verdict
from faultlens.data.decode.worker import Decoding

__all__ = ["Decoder", "Decoding", "Verdict"]
