"""Secrets are taken out of every part of a crash, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import places
import recorded
from faultlens.diagnosis.rank import diagnose
from faultlens.records import report_file
from faultlens.records.crash import (
    Attribute,
    CppException,
    Crash,
    Frame,
    Growth,
    Holder,
    Kernel,
    Mapping,
    Output,
    Program,
    Progress,
    ProgressMark,
    Tensor,
    Thread,
)
from faultlens.records.diagnosis import Reproducer
from faultlens.records.finding import Finding
from faultlens.report.make import make_report, with_reproducer
from faultlens.report.scrub import scrubbed

TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ"
VALUE = "correct horse battery"
RECORDED = sorted(places.RECORDED.glob("*.json"))


def everywhere(text: str) -> Crash:
    frame = Frame(kind="python", function=f"f{text}", file=f"/x/{text}/a.py", line=1)
    tensor = Tensor(dtype="string", shape=(1,), strings=(text.encode(),), contents=b"\xff" + text.encode())
    return recorded.ended(
        program=Program(command=("prog", text), environment={"API_TOKEN": VALUE, "X": text}, directory=f"/d/{text}"),
        threads=(Thread(id=1, frames=(frame,), name=text),),
        kernels=(
            Kernel(
                op="Op", node=text, thread=1, inputs=(tensor,), attributes={"a": Attribute(kind="list", value=[text])}
            ),
        ),
        exceptions=(CppException(type="E", thread=1, seconds_before=0.0, message=text),),
        abort_message=text,
        mappings=(Mapping(start=0, end=1, permissions="r", path=f"/{text}"),),
        output=Output(stdout=text, stderr=f"a {text} b"),
        kernel_log=(text,),
        gaps=(text,),
        sources={f"/x/{text}/a.py": f"x = '{text}'"},
        progress=Progress(detail=text, marks=(ProgressMark(seconds=0.0, kind="save", text=text),)),
        growth=(
            Growth(
                what="memory", seconds=0, before=0, after=1, per_second=1, holders=(Holder(kind="tensors", text=text),)
            ),
        ),
    )


@pytest.mark.parametrize("secret", [TOKEN, VALUE])
def test_every_part(secret: str) -> None:
    crash = replace(everywhere(secret), children=(everywhere(secret),))
    clean = scrubbed(crash)
    left = msgspec.msgpack.encode(clean, enc_hook=int)
    assert secret.encode() not in left
    assert clean.output.stderr == "a <redacted> b"
    assert list(clean.sources) == [clean.threads[0].frames[0].file]  # a frame still finds its source
    assert scrubbed(clean) == clean


def test_values_known_from_elsewhere() -> None:
    crash = recorded.ended(output=Output(stdout="said swordfish"))
    assert make_report(crash, secrets=["swordfish"]).crash.output.stdout == "said <redacted>"


def test_what_comes_with_a_crash() -> None:
    found = Finding(check="c", severity="error", title=f"LD_PRELOAD={TOKEN}", evidence=(), fixes=())
    report = make_report(recorded.ended(), findings=(found,))
    assert report.findings[0].title == "LD_PRELOAD=<redacted>"
    script = Reproducer(kind="script", script=f"login('{TOKEN}')\ntoken = get()", files={"a.npy": TOKEN.encode()})
    kept = with_reproducer(report, script).reproducer
    assert kept and kept.script == "login('<redacted>')\ntoken = get()"
    assert kept.files == {"a.npy": b"*" * len(TOKEN)}


def test_the_wish_of_the_user() -> None:
    crash = replace(everywhere(TOKEN), program=Program(redacted=False, environment={"API_TOKEN": VALUE}))
    assert scrubbed(crash) is crash


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_crashes_stay_as_they_are(path: Path) -> None:
    crash = report_file.read(path).crash
    clean = scrubbed(crash)
    rest = replace(clean, program=crash.program, children=crash.children)
    assert rest == crash
    assert diagnose(clean).diagnoses == diagnose(crash).diagnoses
