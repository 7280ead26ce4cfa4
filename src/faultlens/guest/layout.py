"""The page on which a program leaves its progress: written inside the program, read by the supervisor.

All numbers are little-endian; 0 stands for unknown. Phases and kinds of marks are numbered in the order given here."""

from __future__ import annotations

from struct import Struct

PAGE_BYTES = 4096
PHASES = ("", "train", "evaluate", "predict", "save", "data", "trace")
KINDS = ("", "epoch", "train", "evaluate", "predict", "save", "saved", "trace", "end")

# The first four bytes are the process id: agent.h.
COUNT = Struct("<I")  # marks ever made
COUNT_AT = 8
STATE = Struct("<I4xqqqqqq")  # phase, epoch, epochs, steps, step, time (nanoseconds since 1970), steps ever made
STATE_AT = 16
PHASE = Struct("<I")  # the first of these alone
STEP = Struct("<qqq")  # the last three of these, written for every step
STEP_AT = 48
DETAIL = Struct("<H438s")  # length and text: the file being saved, the function being traced
DETAIL_BYTES = 438
DETAIL_AT = 72
MARK = Struct("<qHH116s")  # time, kind, length and text
MARKS_AT = 512
MARKS = 28  # the latest replaces the oldest
