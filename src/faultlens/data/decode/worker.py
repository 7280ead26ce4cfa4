"""The processes in which a decoder is tried."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.errors import FaultlensError
from faultlens.sandbox.warm.worker import Limits, Worker
from faultlens.text.file_names import to_name
from faultlens.text.safe import one_line


class Decoding(NamedTuple):
    """What the user asked for. Paths are texts: see `text/file_names.py`."""

    python: str  # of the user's programs; has TensorFlow
    using: str | None = None  # "module:function": instead of TensorFlow's decoders
    folder: str = "."  # where the module is looked for
    seconds: float = 20.0  # for one item
    memory: int = 2 << 30  # bytes that an item may add


class DecoderWorker(Worker):
    who = "the decoder"
    server = Path(__file__).parent / "guest" / "server.py"

    def __init__(self, decoding: Decoding, data: int, environment: Mapping[str, str], tick: Callable[[], None]) -> None:
        self._decoding = decoding
        limits = Limits(decoding.seconds, decoding.memory)
        super().__init__(to_name(decoding.python), limits, data, environment, tick)

    def _request(self) -> tuple[dict[str, Any], Callable[[Mapping[str, str]], Mapping[str, str]]]:
        folder = os.path.abspath(to_name(self._decoding.folder))
        return {"using": self._decoding.using, "modules": folder}, lambda _: {}

    def _unusable(self, why: str) -> FaultlensError:
        self.renew()
        using = self._decoding.using
        if using is None:
            return FaultlensError(f"The decoders of TensorFlow cannot be used: {one_line(why, 300)}.")
        advice = f"Try: {self._decoding.python} -c 'import {using.partition(':')[0]}'"
        return FaultlensError(f"{using} cannot be used: {one_line(why, 300)}.", advice)
