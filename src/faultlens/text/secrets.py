"""Secrets in a text: tokens of a known shape, what is assigned to a telling name, words that look drawn at random.

Addresses, symbols, digests and paths stay as they are: a diagnosis needs them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import log2

HIDDEN = "<redacted>"

# Words of a name that say what its value is: DB_PASSWORD, hf_token, "api-key". Not max_tokens, tokenizer, author.
_SECRET = re.compile(
    r"(?:^|[\W_\d]|(?<=[a-z])(?=[A-Z]))"
    r"(?i:secret|token|(?:pg)?password|passwd|passphrase|(?:ssh)?pass|pwd|pw|credentials?|cookie|dsn|auth|authorization|apikey"
    r"|(?:api|access|account|private|signing|encryption|secret|auth|master|license)[_-]?key)"
    r"(?:$|[\W_\d]|(?=[A-Z]))"
)

# Names about a secret, whose value is none: TOKEN_TYPE, AUTH_MODE, password_file.
_ABOUT = re.compile(
    r"(?i)(?:^|[\W_])(?:names?|type|mode|header|prefix|path|file|dir|version|message|var|len|length|count|size|index|class"
    r"|ttl|timeout|parallelism|provider|sock|method|info|status|level|host|port|uri)$"
)

# What services give out, by the shape that they chose so that scanners find it.
_KNOWN = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Z0-9])",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"github_pat_\w{30,}",
    r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent)-[\w-]{16,}",
    r"hf_[A-Za-z0-9]{24,}",
    r"api_org_[A-Za-z0-9]{24,}",  # Hugging Face
    r"sk-[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic and others
    r"(?:sk|rk|pk|whsec)_(?:live|test)?_?[A-Za-z0-9]{16,}",  # Stripe
    r"xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}",  # Slack
    r"AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|1//[\w-]{30,}",  # Google
    r"eyJ[\w-]{8,500}\.[\w-]{8,}(?:\.[\w-]*)?",  # JSON Web Token
    r"npm_[A-Za-z0-9]{30,}|pypi-[\w-]{50,}|dckr_pat_[\w-]{20,}",
    r"SG\.[\w-]{16,80}\.[\w-]{16,}",  # SendGrid
    r"do[opr]_v1_[0-9a-f]{32,}|dapi[0-9a-f]{32}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"(?:gsk|r8|nvapi|pplx|tskey|lin_api|sntrys|hvs|hvb|atlasv1)[_.-][\w.-]{20,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    r"\d{8,10}:AA[\w-]{32,}",  # Telegram
)
_SHAPES = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_KNOWN)})")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.S,
)
_IN_URL = re.compile(r"(?<=://)[^\s:/@'\"<>\[\]]{0,200}:(?P<value>[^\s/@'\"<>\[\]]{1,200})(?=@)")
_SIGNATURE = re.compile(
    r"(?i)(?<=[?&])(?:x-amz-(?:signature|credential|security-token)|sig|signature|sas|key|token)="
    r"(?P<value>[^&\s'\"]{8,})"
)
_WEBHOOK = re.compile(r"(?<=hooks\.slack\.com/services/)[\w/]{20,}|(?<=discord\.com/api/webhooks/)[\w/-]{20,}")
_AUTHORIZATION = re.compile(r"(?i)\b(?:bearer|basic)\s+(?P<value>(?=\S*[\d=])[\w.~+/=-]{12,})")
# name = value, "name": "value", --name=value; a quoted value may hold anything, a bare one is a word.
_ASSIGNED = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z_][\w.-]{0,60})(?P<is>[\"']?\]?\s{0,3}(?:=>|=(?!=)|:(?!:))\s{0,3})"
    r"(?:[rbfuRBFU]{0,2}(?P<quote>[\"'])(?P<quoted>(?:(?!(?P=quote))[^\n\\]|\\.){3,400})(?P=quote)"
    r"|(?P<bare>[^\s\"'()\[\]{},;<>=]{6,400}={0,2})(?![^\s\"'){}\],;<>]))"
)
# Options of programs that take a password, of a command line that is quoted: by a shell, or as Python shows a list.
_APART = r"(?:\s+|['\"],\s*['\"])?"
_OPTIONS = tuple(
    re.compile(rf"(?<![\w-])(?:{programs})(?![\w.])[^\n|;&]{{0,300}}?[\s'\"]{option}(?P<value>[^\s'\"<>,\])]{{1,200}})")
    for programs, option in (
        (r"(?:mysql|mariadb)[\w-]*|7z[ar]?|(?:un)?rar", "-p"),  # with a blank it asks, and the word is a database
        (r"sshpass|mongo\w*", f"-p{_APART}"),
        (r"redis-cli", f"-a{_APART}"),
        (r"ldap\w+", f"-w{_APART}"),
        (r"sqlcmd|(?:un)?zip", f"-P{_APART}"),
        (r"curl", rf"-[A-Za-z]{{0,9}}u{_APART}[^\s:'\"]{{1,100}}:"),
    )
)
# -pSECRET of any program: not -p8080, -p8080:80, -p/path, nor words such as -pthread and -pix_fmt.
_JOINED = re.compile(r"(?<![\w-])-p(?P<value>(?=\d*[A-Za-z])(?=[a-z]*[A-Z\d])[^\s'\"<>,\])=:/]{5,200})(?![^\s'\",\])])")
# --password SECRET; prose has a plain word there: "--password is required".
_LONG = re.compile(
    r"(?<![\w-])--(?P<name>[A-Za-z][\w-]{1,60})(?:\s+(?P<bare>[^\s'\"()\[\]{}<>,;-][^\s'\"<>,;]{2,200})"
    r"|['\"],\s*['\"](?P<quoted>[^'\"\n]{3,400}))"
)
# Bare words that are no secrets: attributes, types, numbers, paths, variables of a shell.
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|(?:str|int|float|bool|bytes|None|True|False)\b.*"
    r"|[-+]?[\d.,_]+[a-zA-Z%]{0,3}|/.*|\$.*"
)
_LITERAL = re.compile(r"(?P<quote>[\"'])(?P<inner>(?:(?!(?P=quote))[^\n\\]|\\.)*)(?P=quote)")
_LETTERS = re.compile(r"[A-Za-z_-]+")
_UUID = re.compile(r"[A-Za-z]{0,5}-?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # the GPU's, a job's

_WORD = re.compile(r"(?<![\w+/=.-])[A-Za-z0-9+/_-]{20,512}={0,2}(?![\w+/=-])")
_CLASSES = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "a" * 26 + "A" * 26 + "0" * 10
)
# Measured on symbols, log lines and sources (0.1 to 0.35) against random letters and digits (0.5 to 0.7).
_MIXED = 0.42
_BITS = 3.6  # of entropy per character


class Scanner:
    """Takes secrets out of texts; `values` are those that are known, wherever they stand."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        longest_first = sorted({value for value in values if value}, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._names: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Of what a program wrote, or a person."""
        return _WORD.sub(_unless_ordinary, _ASSIGNED.sub(_without_assigned, _without_options(self._known(text))))

    def source(self, text: str) -> str:
        """Of a program: what is assigned there without quotes is code, unless it stands inside of a string."""
        text = _LITERAL.sub(_cleaned_literal, _ASSIGNED.sub(_without_literal, _without_options(self._known(text))))
        return _WORD.sub(_unless_ordinary, text)

    def name(self, name: str) -> str:
        """Of a path, a function, a library: only what can be nothing else."""
        if name not in self._names:
            self._names[name] = self._known(name)
        return self._names[name]

    def data(self, data: bytes) -> bytes:
        """Of raw bytes, whose length stays: only what can be nothing else."""
        text = data.decode("latin-1")
        for pattern in (self._values, _SHAPES, _PRIVATE_KEY):
            text = pattern.sub(lambda match: "*" * len(match[0]), text) if pattern else text
        return text.encode("latin-1")

    def _known(self, text: str) -> str:
        if self._values:
            text = self._values.sub(_hidden, text)
        if "-----BEGIN" in text:
            text = _PRIVATE_KEY.sub(_hidden, text)
        if "://" in text:
            text = _IN_URL.sub(_without_value, text)
            text = _SIGNATURE.sub(_without_value, text)
            text = _WEBHOOK.sub(_hidden, text)
        return _AUTHORIZATION.sub(_without_value, _SHAPES.sub(_hidden, text))


def is_secret_name(name: str) -> bool:
    return bool(_SECRET.search(name)) and not _ABOUT.search(name)


def secret_values(variables: Mapping[str, str]) -> set[str]:
    """The values of variables whose name says that they are secret, or whose shape does."""
    scanner = Scanner()
    found = set()
    for name, value in variables.items():
        if is_worth_hiding(value) and (is_secret_name(name) or scanner.text(value) == HIDDEN):
            found.add(value)
        found |= {match["value"] for match in _IN_URL.finditer(value) if is_worth_hiding(match["value"])}
    return found


def secret_arguments(command: Sequence[str]) -> set[str]:
    """The values of options that are secret by their name, or by the program that takes them."""
    line = shlex.join(command)
    found = {match["value"] for pattern in (*_OPTIONS, _JOINED) for match in pattern.finditer(line)}
    for word, following in pairwise((*command, "")):
        name, equals, value = word.partition("=")
        if name.startswith("--") and is_secret_name(name[2:]):
            found.add(value if equals else following)
    return {value for value in found if is_worth_hiding(value) and not value.startswith("-")}


def is_worth_hiding(value: str) -> bool:
    """Too short or too common a word would be taken out of every text; paths are no secrets."""
    return len(value) >= 6 and HIDDEN not in value and not value.startswith(("/", "~/")) and not _is_plain(value)


def _is_plain(value: str) -> bool:
    """A switch or a number: "enabled", "250000"."""
    return bool(re.fullmatch(r"(?i)enabled?|disabled?|default|required|optional|always|\d{1,7}|[\d.]+", value))


def _hidden(match: re.Match[str]) -> str:
    return HIDDEN + "\n" * match[0].count("\n")  # lines keep their numbers


def _without_value(match: re.Match[str]) -> str:
    start, end = (place - match.start() for place in match.span("value"))
    return match[0][:start] + HIDDEN + match[0][end:]


def _without_options(text: str) -> str:
    if "-" not in text:
        return text
    for pattern in (*_OPTIONS, _JOINED):
        text = pattern.sub(_without_value, text)
    return _LONG.sub(_without_option, text)


def _without_option(match: re.Match[str]) -> str:
    group = "quoted" if match["quoted"] else "bare"
    if not is_secret_name(match["name"]) or (group == "bare" and _is_code(match["bare"], " ")):
        return match[0]
    start, end = (place - match.start() for place in match.span(group))
    return match[0][:start] + HIDDEN + match[0][end:]


def _without_assigned(match: re.Match[str]) -> str:
    if match["bare"] and is_secret_name(_last(match["name"])) and not _is_code(match["bare"], match["is"]):
        return match[0].removesuffix(match["bare"]) + HIDDEN
    return _without_literal(match)


def _without_literal(match: re.Match[str]) -> str:
    if not match["quote"] or not is_secret_name(_last(match["name"])):
        return match[0]
    return match[0].removesuffix(match["quoted"] + match["quote"]) + HIDDEN + match["quote"]


def _cleaned_literal(match: re.Match[str]) -> str:
    return match["quote"] + _ASSIGNED.sub(_without_assigned, match["inner"]) + match["quote"]


def _last(name: str) -> str:
    """ "password" of self.password."""
    return name.rpartition(".")[2]


def _is_code(word: str, sign: str) -> bool:
    """Or prose: "unexpected token: semicolon". A line of code in a traceback has blanks around its sign."""
    return HIDDEN in word or bool(_CODE.fullmatch(word)) or (sign != "=" and bool(_LETTERS.fullmatch(word)))


def _unless_ordinary(match: re.Match[str]) -> str:
    return HIDDEN if _looks_random(match[0]) else match[0]


def _looks_random(word: str) -> bool:
    """Letters of both cases and digits, without the order that names have. Hexadecimal digits alone may be anything."""
    if word.startswith(("/", "_Z")) or re.fullmatch(r"[0-9a-fA-Fx-]+", word) or _UUID.fullmatch(word):
        return False
    classes = re.sub(r"\W|_", "", word).translate(_CLASSES)
    if not {"a", "A"} <= set(classes) or classes.count("0") < 2:
        return False
    changes = sum(left != right for left, right in pairwise(classes))
    entropy = -sum(share * log2(share) for share in (word.count(each) / len(word) for each in set(word)))
    return changes >= _MIXED * len(classes) and entropy >= _BITS
