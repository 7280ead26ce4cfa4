"""Secrets stay out of reports: in the environment, in arguments, in output."""

from __future__ import annotations

import pytest

from faultlens.redaction import HIDDEN, hide_values, redact_command, redact_environment


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        (["python", "train.py", "--token", "abc"], ["python", "train.py", "--token", HIDDEN]),
        (["python3", "-u", "-X", "dev", "train.py", "data"], ["python3", "-u", "-X", "dev", "train.py", HIDDEN]),
        (
            ["/v/bin/python3.11", "-m", "pkg.train", "--lr=0.1"],
            ["/v/bin/python3.11", "-m", "pkg.train", f"--lr={HIDDEN}"],
        ),
        (["python", "-c", "password = 'x'", "y"], ["python", "-c", HIDDEN, HIDDEN]),
        (["mysql", "-p", "secret"], ["mysql", "-p", HIDDEN]),
        (["prog", "-5"], ["prog", HIDDEN]),
        ([], []),
    ],
)
def test_commands(command: list[str], kept: list[str]) -> None:
    assert redact_command(command) == tuple(kept)


def test_environment_keeps_only_what_is_known_to_be_harmless() -> None:
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PATH": "/bin",
        "AWS_SECRET_ACCESS_KEY": "k",
        "FOO": "b",
        "TF_TOKEN": "t",
    }
    assert redact_environment(environment) == {
        "TF_CPP_MIN_LOG_LEVEL": "3", "PATH": "/bin", "AWS_SECRET_ACCESS_KEY": HIDDEN, "FOO": HIDDEN, "TF_TOKEN": HIDDEN,
    }  # fmt: skip


def test_values_of_secrets_are_hidden_in_texts() -> None:
    text = hide_values("login with hunter2hunter2 failed", {"DB_PASSWORD": "hunter2hunter2", "API_KEY": "abc"})
    assert text == f"login with {HIDDEN} failed"
