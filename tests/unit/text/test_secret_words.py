"""What is taken for a secret in a text, and what a diagnosis needs and must stay."""

from __future__ import annotations

import random
import string

import pytest

from faultlens.text.secrets import HIDDEN, Scanner, secret_arguments, secret_values

DRAW = random.Random(17)


def drawn(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(DRAW.choice(letters) for _ in range(length))


TOKENS = [
    "AKIA" + drawn(16, "ABCDEFGHJKLMNPQRSTUVWXYZ234567"),
    "ghp_" + drawn(36),
    "github_pat_" + drawn(22) + "_" + drawn(59),
    "glpat-" + drawn(20),
    "xoxb-123456789012-" + drawn(24),
    "hf_" + drawn(34),
    "sk-proj-" + drawn(48),
    "sk_live_" + drawn(24),
    "AIza" + drawn(35),
    "eyJhbGciOiJIUzI1NiJ9." + drawn(30) + "." + drawn(43),
    "npm_" + drawn(36),
    "dapi" + drawn(32, "0123456789abcdef"),
]


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_known_shape(token: str) -> None:
    for text in (token, f"login with {token} failed", f"x = '{token}'", f"https://host/{token}/x"):
        assert token not in Scanner().text(text)
        assert token not in Scanner().source(text)
        assert token not in Scanner().name(text)
    data = b"\x00\xff" + token.encode() + b"\x00"
    assert token.encode() not in Scanner().data(data)
    assert len(Scanner().data(data)) == len(data)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password=hunter2", f"password={HIDDEN}"),
        ("DB_PASSWORD=correcthorse and", f"DB_PASSWORD={HIDDEN} and"),
        ("password: hunter2!", f"password: {HIDDEN}"),
        ("{'api_key': 'a b'}", f"{{'api_key': '{HIDDEN}'}}"),
        ('"token": "abc def"', f'"token": "{HIDDEN}"'),
        ("--api-key=hunter22", f"--api-key={HIDDEN}"),
        ("mySecret='hunter2'", f"mySecret='{HIDDEN}'"),
        ("os.environ['HF_TOKEN'] = 'hunter2'", f"os.environ['HF_TOKEN'] = '{HIDDEN}'"),
        ("Authorization: Bearer abcdefghij123", f"Authorization: Bearer {HIDDEN}"),
        ("postgres://ada:pa55@db/x", f"postgres://ada:{HIDDEN}@db/x"),
        ("https://b.s3/x?X-Amz-Signature=0123456789abcdef&y=1", f"https://b.s3/x?X-Amz-Signature={HIDDEN}&y=1"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nnext", f"{HIDDEN}\n\n\nnext"),
        ("cut off: -----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", f"cut off: {HIDDEN}\n"),
    ],
)
def test_what_is_assigned_to_a_telling_name(text: str, left: str) -> None:
    assert Scanner().text(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("running mysql -u root -phunter db", f"running mysql -u root -p{HIDDEN} db"),
        (
            "Command '['mysqldump', '-uroot', '-phunter']' failed",
            f"Command '['mysqldump', '-uroot', '-p{HIDDEN}']' failed",
        ),
        ("sshpass -p hunter ssh host", f"sshpass -p {HIDDEN} ssh host"),
        ("['redis-cli', '-a', 'hunter']", f"['redis-cli', '-a', '{HIDDEN}']"),
        (
            "curl -su ada:hunter https://x; curl -u ada:hunter x",
            f"curl -su ada:{HIDDEN} https://x; curl -u ada:{HIDDEN} x",
        ),
        ("job -pSECRET", f"job -p{HIDDEN}"),
        ("job.py '-ps3cr3t-word' x", f"job.py '-p{HIDDEN}' x"),
        ("deploy --password hunter2 now", f"deploy --password {HIDDEN} now"),
        ("['deploy', '--api-key', 'hunter']", f"['deploy', '--api-key', '{HIDDEN}']"),
        ("PGPASSWORD=hunter2 psql", f"PGPASSWORD={HIDDEN} psql"),
    ],
)
def test_options_of_commands(text: str, left: str) -> None:
    assert Scanner().text(text) == left
    assert Scanner().text(left) == left


@pytest.mark.parametrize(
    ("command", "secrets"),
    [
        (("mysql", "-uroot", "-phunter"), {"hunter"}),
        (("job", "-pSECRET"), {"SECRET"}),
        (("job", "--token", "hunter22", "--password=swordfish"), {"hunter22", "swordfish"}),
        (("job", "-p8080", "-p", "8080:80", "-pthread", "--tokenizer", "WordPiece", "--password", "--verbose"), set()),
        ((), set()),
    ],
)
def test_values_of_arguments(command: tuple[str, ...], secrets: set[str]) -> None:
    assert secret_arguments(command) == secrets


def test_words_drawn_at_random() -> None:
    for length, share in ((24, 0.8), (32, 0.9), (64, 0.97)):
        words = [drawn(length) for _ in range(500)]
        found = sum(Scanner().text(f"got {word} back") == f"got {HIDDEN} back" for word in words)
        assert found > share * len(words)


@pytest.mark.parametrize(
    "text",
    [
        "unexpected token: semicolon",
        "max_tokens=512 tokenizer=WordPiece token: 5",
        "token = os.environ['X']",
        "token = get_token()",
        "def login(password: str, token=None):",
        "_ZN10tensorflow6thread10ThreadPool4ImplC2EPNS_3EnvERKNS_13ThreadOptionsERKSsibPN5Eigen9AllocatorE",
        "tensorflow::BlockLSTMOp<Eigen::ThreadPoolDevice, float, true>::Compute(tensorflow::OpKernelContext*)",
        "build id 3f786850e387550fdab836ed7e6dc881de23001b",
        "docker run -p8080 -p8080:80/tcp -p 127.0.0.1:80:80 -p/srv/x; gcc -pthread -pedantic -pipe; ffmpeg -pix_fmt",
        "the following arguments are required: --password, --token TOKEN; --password is required, --token expected",
        "mysql -p database; python -m pdb -p 4242; ssh -p2222 host; curl -u user",
        "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
        "rip 0x00007f3a1c2b4d5e rsp 0x7ffc12345678",
        "PyUnicode_AsUTF8String _SelfAdjointEigV2Grad F2PyDict_SetItemString",
        "StatefulPartitionedCall_12/model_3/dense_7/BiasAdd/ReadVariableOp_1:0 float32 [32, 224, 224, 3]",
        "/home/ada/.venv/lib/python3.11/site-packages/numpy.libs/libopenblas64_p-r0-0cf96a72.3.23.dev.so",
        "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "2024-01-01 10:00:00.123456: F tsl/platform/default/env.cc:74] Check failed: ret == 0 (11 vs. 0)",
    ],
)
def test_what_a_diagnosis_needs_stays(text: str) -> None:
    scanner = Scanner()
    assert scanner.text(text) == scanner.source(text) == scanner.name(text) == text


def test_values_of_variables() -> None:
    variables = {
        "DB_PASSWORD": "correct horse",
        "GIT_AUTHOR_NAME": "Ada Lovelace",
        "SSH_AUTH_SOCK": "/tmp/ssh/agent.1",
        "TOKENIZERS_PARALLELISM": "disabled",
        "AUTH": "on",
        "DATABASE_URL": "postgres://ada:swordfish@db/x",
        "PLAIN": "hf_" + "a1B2" * 10,
        "PWD": "/home/ada/x",
    }
    assert secret_values(variables) == {"correct horse", "swordfish", variables["PLAIN"]}


def test_hostile_texts_take_no_time() -> None:
    for text in (
        "eyJ-" * 20_000,
        "-----BEGIN PRIVATE KEY-----" * 3000,
        "token=" * 20_000,
        "aA1" * 40_000,
        "'" * 60_000,
        "mysql -u " * 10_000,
        "--password " * 10_000,
        " -p" * 30_000,
    ):
        for clean in (Scanner().text, Scanner().source):
            clean(text)
