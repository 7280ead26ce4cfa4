from __future__ import annotations

from collections.abc import Iterable

from faultlens.doctor.check import Check
from faultlens.knowledge import Known, all_known_crashes
from faultlens.knowledge.crashes import ADVISORIES
from faultlens.records.finding import Examination
from faultlens.target_env.target import TargetEnvironment


class Advisories(Check):
    """
    Which crashes of the installed TensorFlow are known: published advisories, and calls of ops that were tried on
    several releases and died. It is never a finding: these ops die on arguments that few programs give, and every
    release has some. The names are worth a look when untrusted data reach an op (`-v` lists them).
    """

    name = "advisories"
    looks_at = "published advisories and ops known to die in the installed TensorFlow"
    position = 30

    def examine(self, target: TargetEnvironment) -> Examination:
        if target.tensorflow is None:
            return self.skipped("TensorFlow is not installed")
        version = target.tensorflow.version
        published, tried = split(all_known_crashes(version))
        advisories = f"{len(published) or 'no'} advisor{'y' if len(published) == 1 else 'ies'}"
        ops = sorted({op for known in tried for op in known.ops})
        summary = f"{advisories} for {version}; {len(ops) or 'no'} ops known to die on bad arguments"
        return self.fine(summary, [*map(_line, published), *map(_line, tried)])


def split(known: Iterable[Known]) -> tuple[list[Known], list[Known]]:
    """Published ones, each once, and those that were only tried."""
    published: dict[str, Known] = {}
    tried = []
    for each in known:
        if each.url.startswith(ADVISORIES):
            published.setdefault(each.id, each)
        else:
            tried.append(each)
    return list(published.values()), tried


def _line(known: Known) -> str:
    about = [", ".join(known.ops), known.effect, known.id, f"fixed in {known.fixed_in}" if known.fixed_in else ""]
    return "; ".join(part for part in (*about, known.url) if part)
