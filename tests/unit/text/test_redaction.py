"""Secrets stay out of reports: in the environment, in arguments, in output."""

from __future__ import annotations

import pytest

from faultlens.text.redaction import HIDDEN, hide_values, redact_command, redact_environment


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
        (["python", "-uc", "password = 'x'"], ["python", "-uc", HIDDEN]),
        (["python", "-cprint('x')", "y"], ["python", f"-c{HIDDEN}", HIDDEN]),
        (["python", "-Wignore", "-um", "pkg.train", "x"], ["python", "-Wignore", "-um", "pkg.train", HIDDEN]),
        (
            ["python", "--check-hash-based-pycs", "default", "t.py", "x"],
            ["python", "--check-hash-based-pycs", "default", "t.py", HIDDEN],
        ),
        (["python-vault", "secret"], ["python-vault", HIDDEN]),
        (["mysql", "-psecret"], ["mysql", f"-p{HIDDEN}"]),
        (["bash", "-c", "curl -H secret"], ["bash", "-c", HIDDEN]),
        (["java", "-Dpassword=x"], ["java", f"-D{HIDDEN}"]),
        (["prog", "--token=abc", "--", "-----BEGIN"], ["prog", f"--token={HIDDEN}", "--", HIDDEN]),
        (["prog", "--hf_aB3dE5gH7jK9mN1pQ3sT5vW7yZ"], ["prog", HIDDEN]),
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


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("TF_ENABLE_ONEDNN_OPTS", "0", True),
        ("TF_GPU_ALLOCATOR", "cuda_malloc_async", True),
        ("CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,1", True),
        ("OMP_NUM_THREADS", "4", True),
        ("KMP_AFFINITY", "granularity=fine,compact,1,0", True),
        ("LD_LIBRARY_PATH", "/usr/lib:/opt/x y", True),
        ("XLA_FLAGS", "--xla_dump_to=/tmp/x --xla_force_host_platform_device_count=2", True),
        ("RAY_ADDRESS", "ray://ada:secret@host:10001", False),
        ("TF_NOTE", "swordfish", False),
        ("CUDA_LICENSE", "AB-1234-CDEF", False),
        ("NCCL_COMMENT", "swordfish", False),
        ("JAX_COORDINATOR", "swordfish", False),
        ("TF_CONFIG", '{"auth": "x"}', False),
        ("PYTHONSTARTUP", "/x", False),
        ("MKL_LICENSE_KEY", "1", False),
        ("XLA_FLAGS", "--xla_token=hf_aB3dE5gH7jK9mN1pQ3sT5vW7yZ", False),
        ("PATH", "/bin:hf_aB3dE5gH7jK9mN1pQ3sT5vW7yZ", False),
    ],
)
def test_settings_are_kept_if_their_value_has_a_harmless_shape(name: str, value: str, kept: bool) -> None:
    assert redact_environment({name: value}) == {name: value if kept else HIDDEN}


def test_values_of_secrets_are_hidden_in_texts() -> None:
    text = hide_values("login with hunter2hunter2 failed", {"DB_PASSWORD": "hunter2hunter2", "API_KEY": "abc"})
    assert text == f"login with {HIDDEN} failed"
