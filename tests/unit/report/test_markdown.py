"""The Markdown for bug reports: complete, without secrets, and safe in GitHub's dialect whatever it quotes."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

import in_flight
import recorded
from faultlens.records.crash import Crash, Output
from faultlens.records.report_file import Report
from faultlens.report import markdown
from hostile import hostile


def test_document() -> None:
    text = markdown.document(recorded.diagnosed("segv_in_custom_op"))
    for part in (
        "## FastGather reads table 3, which was never loaded\n\n`FL999` `made-up-cause` (93% sure)\n",
        "python died by SIGSEGV in train.py:24 (main)",
        "> 24 |             loss = step(images, labels)\n",
        "- rdi, through which it reads, is 0 (registers)\n",
        "### Fix\n\n- load every table before the first call *(safe)*: call `fast_gather.load(path)` for",
        "- `stack-overflow`: the instruction is an ordinary mov\n",
        "FastGatherOp<…>::Compute                      fast_gather.so\n",
        "| tensorflow-cpu | 2.21.0 |\n",
        "```sh\nfaultlens run -- python train.py --epochs '<redacted>'\n```\n",
    ):
        assert part in text


def test_op_at_fault_and_reproducer() -> None:
    text = markdown.document(in_flight.report(reproducer=in_flight.REPRODUCER))
    for part in (
        "\nProgress: in step 1,204 (of 1,875) of epoch 4 (of 10), while training.\n",
        "\nCalled from train.py:24 in main.\n",
        "\n`FastGather`, node `model/gather/FastGather`, layer `gather`, kernel `FastGatherOp<float, long>`,"
        " written at `train.py:14 in step`.\n",
        "\n| input 1 | int64 \\[12\\] | 7, 2, 1, 0, 4, 1, 4, 9, …, from 0 to 9 |\n",
        "\n| input 3 | string \\[2\\] |  |\n",  # texts may be private
        "\nAttributes: `T` = `float32`, `shape` = `[-1, 10]`, `table` = `'digits'`, `validate` = `False`,",
        "\nAlso in flight: MatMul, StatefulPartitionedCall.\n",
        "\nContents of 3 inputs (121 bytes) are kept in the report file; `--no-contents` leaves them out.\n",
        "\nReproduces 3 of 3, 6 lines: SIGSEGV in FastGatherOp\\<…\\>::Compute.\n",
        f"\n```python\n{in_flight.SCRIPT}```\n",
        "\nBeside it: `input_0.npy` (1.4 KiB).\n",
    ):
        assert part in text
    assert "faultlens repro" not in text


def test_without_a_reproducer_it_says_how_to_get_one() -> None:
    text = markdown.document(in_flight.report())
    assert "### Reproduce\n\n`faultlens repro` writes a small script that crashes the same way.\n" in text


def test_a_script_keeps_its_indentation_and_its_fence() -> None:
    script = 'if True:\n\tprint("""\n````\n""")\n'
    text = markdown.document(in_flight.report(reproducer=replace(in_flight.REPRODUCER, script=script)))
    assert '\n`````python\nif True:\n    print("""\n````\n""")\n`````\n' in text


def test_a_long_script_is_left_out() -> None:
    long = replace(in_flight.REPRODUCER, script="x = 1  # and so on\n" * 5000)
    text = markdown.document(in_flight.report(reproducer=long))
    assert "too long to stand here; `faultlens repro` writes it" in text
    assert len(text) < 10_000


@pytest.mark.parametrize("name", recorded.NAMES)
def test_every_recorded_crash(name: str) -> None:
    text = markdown.document(recorded.report(name, with_sources=True))
    assert text.startswith("## ") and text.endswith("\n") and not text.endswith("\n\n")
    assert "/home/" not in text


def test_no_secrets() -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    program = replace(
        report.crash.program,
        redacted=False,
        command=("/home/ada/venv/bin/python", "train.py", "--key", "hunter2hunter2"),
        environment={"API_KEY": "sk-1234567890", "HOME": "/home/ada"},
    )
    output = Output(stderr="connecting with sk-1234567890 from /home/ada/x\n")
    crash = replace(report.crash, program=program, output=output)
    text = markdown.document(replace(report, crash=crash))
    assert "connecting with <redacted> from ~/x" in text
    assert "hunter2" not in text and "sk-123" not in text and "ada" not in text.replace("adam", "")


def test_a_fence_is_longer_than_the_backticks_in_it() -> None:
    crash = replace(recorded.report("abort_by_check").crash, output=Output(stderr="F0000 x.cc:1] ````\n```\n~~~\n"))
    text = markdown.document(Report(outcome=crash.outcome, crash=crash))
    assert re.search(r"^`````text\n(?:.*\n)*?.*````.*\n(?:.*\n)*?`````$", text, re.M)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("plain words, 2.21.0 of tensor_shape.cc:587", "plain words, 2.21.0 of tensor_shape.cc:587"),
        ("see `faultlens run`", "see `faultlens run`"),
        ("a ` b", "a \\` b"),
        ("*a* _b_ <c> [d](e)", "\\*a\\* \\_b\\_ \\<c\\> \\[d\\](e)"),
        ("@ada fixes #12", "@<!-- -->ada fixes #<!-- -->12"),
        ("http://x www.x", "http\\://x www\\.x"),
        ("# heading", "\\# heading"),
        ("1. list", "1\\. list"),
        ("- list", "\\- list"),
        ("`a|b`", "`a\\|b`"),
    ],
)
def test_foreign_words(words: str, shown: str) -> None:
    assert markdown._sentence(words) == shown


def test_hostile_content_is_shown_safely() -> None:
    text = markdown.document(hostile())
    assert not set(text) & {chr(code) for code in (*range(32), *range(127, 160))} - {"\n"}
    assert "\u202e" not in text
    text.encode()
    assert len(text) < 65_536, "GitHub takes no more"
    page = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(text)
    assert not re.search(r"<(?:script|img|a|style|iframe)\b", page)
    assert not re.search(r"<h[1-6]>\s*heading", page)
    assert not re.search(r"(?<!`)@someone", re.sub(r"<(code)\b.*?</code>", "", page, flags=re.S))


def test_hardly_any_facts() -> None:
    crash: Crash = recorded.ended()
    text = markdown.document(Report(outcome=crash.outcome, crash=crash))
    assert text == "## the program died by SIGSEGV\n\n### What happened\n\nthe program died by SIGSEGV.\n"
