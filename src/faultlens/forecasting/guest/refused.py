"""What ends a run, and the user can do something about."""

from __future__ import annotations


class RefusedError(Exception):
    """The text says what to do."""

    ours = True


class EndedError(RefusedError):
    """The user's code ended the process: what it had said last belongs to the sentence."""

    ended = True
