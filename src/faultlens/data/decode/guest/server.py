"""Tries the items of a scan with a decoder, in processes that are forked for it."""

from __future__ import annotations

import json
import os
import sys

from faultlens_sandbox import board, fork_server

from . import decoders


class Child(fork_server.Child):  # type: ignore[misc]
    name = "faultlens scan --decode"

    def get_ready(self) -> None:
        self.decode = decoders.chosen(self.request["using"], self.request["modules"])

    def try_item(self, index: int) -> None:
        self.words[board.AT] = index + 1
        offset, size, kind = self.board.entry(index)
        data = os.pread(self.request["data"], size, offset)
        refused = self.decode(board.KINDS[kind], data, self.count)
        self.only_the_child()
        if not self.is_whole():
            refused = "deadly", "", fork_server.BROKEN
        if refused is not None:
            self.board.say(json.dumps([index, *refused], ensure_ascii=False))
        if refused is not None and refused[0] == "deadly":
            os._exit(1)


def main() -> None:
    fork_server.run(fork_server.Server(json.loads(sys.argv[1])), Child)
