"""Counts the signals it gets until SIGQUIT; the file `ready` says that it listens."""

import signal
from pathlib import Path

NAMES = ["TERM", "INT", "HUP", "USR1", "USR2", "XCPU", "VTALRM", "PROF", "IO", "PWR", "URG", "WINCH", "RTMIN", "RTMAX"]
numbers = {name: int(getattr(signal, f"SIG{name}")) for name in NAMES} | {"RTMIN+5": int(signal.SIGRTMIN) + 5}
counts = dict.fromkeys(numbers.values(), 0)
waited_for = {*numbers.values(), int(signal.SIGQUIT)}


def count(number: int, _: object) -> None:
    counts[number] += 1


for each in numbers.values():
    signal.signal(each, count)
ended = []
signal.signal(signal.SIGQUIT, lambda number, _: ended.append(number))
Path("ready").touch()
while not ended:
    signal.pause()
print({name: counts[number] for name, number in numbers.items()})
