"""What a user sees when faultlens cannot do what was asked: one sentence, and what to do next."""

from __future__ import annotations


class FaultlensError(Exception):
    """Ends a command with exit code 2. `problem` is one sentence, `advice` says what to try."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.problem} {self.advice}".strip()
