"""A format of somebody else, whose reader does to itself what the lines of a file say."""

import ctypes
import os
import signal
import time

from faultlens.data.formats.base import Format


class Deadly(Format):
    name = "deadly"
    suffixes = (".deadly",)

    def begins(self, head):
        return head.startswith(b"deadly\n")

    def check(self, source, piece, look):
        print("rubbish on stdout", flush=True)
        for number, line in enumerate(source.read(0, piece.end).split()):
            if look.at(f"record {number}"):
                ACTIONS.get(line, lambda: None)()
                look.records += 1
                if line == b"bad":
                    look.flaw("structure", "it says so", record=number)
                if line == b"bug":
                    raise KeyError("a mistake of the format")


def eat():
    kept = []
    while True:
        kept.append(b"x" * (16 << 20))


ACTIONS = {
    b"segv": lambda: ctypes.string_at(0),
    b"abort": os.abort,
    b"leave": lambda: os._exit(0),
    b"kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    b"sleep": lambda: time.sleep(600),
    b"eat": eat,
    b"slow": lambda: time.sleep(0.05),
}
