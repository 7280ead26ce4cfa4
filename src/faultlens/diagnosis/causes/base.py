"""What a cause is: a name, an explanation, and a rule that looks at one crash."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import msgspec

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.records.diagnosis import Evidence, Fix, Location
from faultlens.rules import Rule
from faultlens.text.safe import one_line

# How sure a rule may be, in the share of cases in which it is right (docs/accuracy.md has what was measured).
PROVEN = 0.97  # a counter, a message or a register says so, and nothing else explains it
STRONG = 0.9  # several facts agree
LIKELY = 0.75  # the usual explanation of these facts
POSSIBLE = 0.5  # fits, and so do others
WEAK = 0.3  # only the circumstances fit
SAID = 0.65  # somebody said so, and nothing else was seen
STACK_IS_SILENT = 0.1  # less sure where there was a stack, and it does not show it


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a cause found in a crash."""

    strength: float
    title: str  # one line about this very crash
    evidence: tuple[Evidence, ...]
    fixes: tuple[Fix, ...]
    location: Location | None = None
    op: str | None = None
    against: tuple[str, ...] = ()  # facts that do not fit; each one lowers the confidence
    by_fence: bool = False  # it rests on the block that the fence caught: others can only guess
    by_stack: bool = False  # the call that ended the program is on the stack: words that were printed prove nothing
    general: bool = False  # it says what happened, not why: any cause that the facts support says more


class Words(NamedTuple):
    """What is said of a cause just before the end: it decides where only the exit status was seen."""

    said: re.Pattern[str]
    title: str  # "{said}" is the line
    fix: Fix
    strength: float = SAID
    signals: tuple[str, ...] = ("SIGABRT",)
    unless: re.Pattern[str] | None = None  # said of something else as well
    mentioned: Wording | None = None  # and in the user's sources


class Cause(Rule, ABC):
    """One cause. The docstring of a subclass is its page: what it is, how it looks, how to prove and to fix it."""

    words: ClassVar[Words | None] = None

    @property
    def family(self) -> str:
        """The folder the cause is filed under."""
        return type(self).__module__.rpartition(".")[0].rpartition(".")[2]

    @property
    def proof(self) -> str:
        """How to prove it, in one sentence."""
        section = self.explanation.partition("## How to prove it")[2].partition("\n## ")[0]
        return " ".join(section.split()).partition(". ")[0].rstrip(".")

    @abstractmethod
    def examine(self, case: Case) -> Finding | None:
        """What speaks for this cause; None when nothing does."""

    def read(self, case: Case) -> Finding | None:
        """What its words alone say, where nothing else was seen, or decides."""
        words = self.words
        if words is None or case.signal not in words.signals or not (case.only_words or case.aborted):
            return None
        line = case.last_line_saying(words.said)
        if line is None or (words.unless is not None and case.said(words.unless)):
            return None
        mention = case.mentions(words.mentioned) if words.mentioned else None
        if words.mentioned and mention is None:
            return None
        return Finding(
            strength=words.strength if case.only_words else words.strength - STACK_IS_SILENT,
            title=one_line(words.title.format(said=line), 160),
            evidence=evidence(
                (one_line(line, 240), "stderr"),
                (f"ended by {case.signal}; nothing more was seen of its end", "wait status")
                if case.only_words
                else None,
                *case.fault_evidence,
                (f"{mention.file}:{mention.line}: {mention.text}", "source") if mention else None,
            ),
            fixes=(words.fix, *((_LOOK,) if case.only_words else ())),
        )

    def rule_out(self, case: Case) -> str | None:  # noqa: ARG002
        """The fact that excludes this cause, where it would come to mind."""
        return None


_LOOK = Fix(
    title="run it under `faultlens run` where it may look into processes", detail="it then sees who", grade="safe"
)


def evidence(*facts: tuple[str, str] | Evidence | None) -> tuple[Evidence, ...]:
    """Pairs of (fact, source); what is None was not found and is left out."""
    return tuple(
        fact if isinstance(fact, Evidence) else Evidence(fact=fact[0], source=fact[1])
        for fact in facts
        if fact is not None
    )


def safe(title: str, detail: str = "", command: str = "") -> Fix:
    """A fix that can be applied without much thought."""
    return Fix(title=title, detail=detail, grade="safe", command=command)


def consider(title: str, detail: str = "") -> Fix:
    """A fix that needs thought."""
    return Fix(title=title, detail=detail, grade="needs thought")


def join(*groups: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Evidence of several sources in one, without repetition."""
    return tuple(dict.fromkeys(item for group in groups for item in group))
