"""The agent: a C library preloaded into the supervised program, and the memory it shares with us."""

from __future__ import annotations

from pathlib import Path

LIBRARY = Path(__file__).with_name("libfaultlens_agent.so")
INSIDE = Path(__file__).parents[1] / "guest"  # Python code that the agent puts into the program
