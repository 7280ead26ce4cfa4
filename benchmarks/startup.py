"""How much later a program begins under `faultlens run`, and how long `faultlens --help` takes."""

from __future__ import annotations

from functools import partial

import measure as m
from measure import AGAIN, FAULTLENS, PLAIN, WAYS, Bench, Table

ROUNDS = 25
START_LIMIT, HELP_LIMIT = 0.15, 0.2
HEADER = ("", "wall time", "more than plain", "target", "")


def run(bench: Bench) -> Table:
    program = [bench.python, "-c", "pass"]
    commands = {f"`python -c pass`, {way}": [*prefix, *program] for way, prefix in WAYS.items()}
    commands["`faultlens --help`"] = [*FAULTLENS, "--help"]
    samples = m.interleave(
        bench.rounds(ROUNDS), {name: partial(m.seconds_of, command) for name, command in commands.items()}
    )
    base = f"`python -c pass`, {PLAIN}"
    table = Table("Start-up", "Wall time from the start of the command to its end.", HEADER, data=samples)
    for name, values in samples.items():
        wall = m.estimate(values)
        if name == base:
            table.rows.append([name, m.span(wall, digits=3), "", "", ""])
        elif name.endswith("--help`"):
            table.rows.append([name, m.span(wall, digits=3), "", f"{HELP_LIMIT} s", m.verdict(wall, HELP_LIMIT)])
        else:
            more = m.difference(samples, name, base)
            noise = name.endswith(AGAIN)
            target = ["noise", ""] if noise else [f"+{START_LIMIT} s", m.verdict(more, START_LIMIT)]
            table.rows.append([name, m.span(wall, digits=3), m.span(more, digits=3), *target])
    return table
