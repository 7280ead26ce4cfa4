"""How long `faultlens doctor` takes on a full TensorFlow environment, beside what it is run instead of."""

from __future__ import annotations

from functools import partial

import measure as m
from measure import FAULTLENS, Bench, Table

ROUNDS = 10
LIMIT = 1.0
IMPORT = "`import tensorflow`"
DOCTOR = "`faultlens doctor`"
HEADER = ("", "wall time", "of the import", "target", "")


def run(bench: Bench) -> Table:
    doctor = [*FAULTLENS, "doctor", "--python", bench.python]
    commands = {
        IMPORT: [bench.python, "-c", "import tensorflow"],
        DOCTOR: doctor,
        "`faultlens doctor --deep`": [*doctor, "--deep"],
        "`pip check`": [bench.python, "-m", "pip", "--disable-pip-version-check", "check"],
    }
    samples = m.interleave(
        bench.rounds(ROUNDS), {name: partial(m.seconds_of, command) for name, command in commands.items()}
    )
    text = "Wall time of the whole command, files in the page cache. The import is what the doctor does without."
    table = Table("The doctor", text, HEADER, data=samples)
    for name, values in samples.items():
        wall = m.estimate(values)
        share = "" if name == IMPORT else m.span(m.ratio(samples, name, IMPORT), "times")
        target = [f"{LIMIT:.0f} s", m.verdict(wall, LIMIT)] if name == DOCTOR else ["", ""]
        table.rows.append([name, m.span(wall), share, *target])
    return table
