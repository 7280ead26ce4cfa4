"""What `faultlens scan` found out about training data: records that are shown, kept, and written as JSON."""

from __future__ import annotations

from typing import Literal

from faultlens.records.crash import Record
from faultlens.records.severity import Severity, number_of

SCHEMA_VERSION = 1

# What can be wrong; docs/scan.md has a sentence about each.
Kind = Literal[
    "changed",  # while it was read
    "checksum",
    "deadly",  # a decoder or reader died of it
    "decode",  # the decoder refuses it
    "differs",  # from the rest, or from the schema
    "duplicate",
    "empty",
    "endless",  # a decoder did not come back in time
    "garbage",  # an image that decodes, and not to what was put in
    "greedy",  # a decoder took more memory than it may
    "hostile",  # an archive that would do harm
    "label",  # does not follow its image
    "magic",  # not what its name says
    "not-finite",  # NaN or infinity
    "oversized",
    "short",  # less than an index or a header says
    "structure",
    "trailing",  # bytes behind the end
    "truncated",
    "unreadable",
    "unsupported",  # nothing can be said
    "written",  # a process has it open for writing
]


class Place(Record, frozen=True):
    """Where something is."""

    path: str
    record: int | None = None  # counted from 0; what was lost between two whole records counts as one
    offset: int | None = None  # bytes from the beginning; in a compressed TFRecord file, of what is packed in it
    size: int | None = None  # bytes
    member: str = ""  # of an archive, a feature of an Example, a dataset of an HDF5 file, a column


class Flaw(Record, frozen=True, omit_defaults=False):
    """One thing that is wrong."""

    kind: Kind
    severity: Severity
    place: Place
    reason: str  # what was seen, as part of a sentence: "the checksum of its data does not fit"
    report: str | None = None  # name of the stored report, for `faultlens show`, of a decoder that died


class Seen(Record, frozen=True):
    """A value that a trait was seen to have."""

    count: int
    places: tuple[Place, ...] = ()  # the first few


class Trait(Record, frozen=True):
    """A property that should be the same everywhere in a data set: the length of a feature, the shape of arrays."""

    name: str  # "number of values of the feature label"; of kind "label", what is wrong where it is not usual
    group: str = ""  # files that belong together
    share: float | None = None  # of files that must agree before the others count as odd; None: it is one of records
    usual: str = ""  # the only value that can be the rule; otherwise there is none
    kind: Kind = "differs"
    values: dict[str, Seen] = {}  # noqa: RUF012 (msgspec copies it)
    varied: bool = False  # too many values for a rule


class Identity(Record, frozen=True):
    """What tells that a file is still the same."""

    size: int
    modified: int = 0  # nanoseconds
    inode: int = 0
    tag: str = ""  # of a remote file


class Piece(Record, frozen=True):
    """A part of a file that is checked on its own. It owns the records that begin in it."""

    path: str
    format: str
    start: int
    end: int
    identity: Identity
    last: bool = True  # of its file
    skip: tuple[str, ...] = ()  # items that a reader died of: see look.Look.at
    forced: bool = False  # begins with a record at `start`, and nowhere else


class Unchecked(Record, frozen=True, omit_defaults=False):
    """A check that was not made, in files that were looked at otherwise."""

    check: str  # what would have been looked at: "NaN and infinity in arrays"
    reason: str  # "NumPy is not installed"
    advice: str = ""  # what to do so that it is made
    files: int = 1
    first: str = ""  # the path of one of them


class Checked(Record, frozen=True, omit_defaults=True):
    """What came of a piece."""

    piece: Piece
    flaws: tuple[Flaw, ...] = ()
    flaws_untold: int = 0  # errors beyond those that are kept
    warnings_untold: int = 0
    records: int = 0
    decoded: int = 0  # items that a decoder was tried with
    entered: int | None = None  # where the first record begins
    left: int | None = None  # where the first one behind the piece begins
    traits: tuple[Trait, ...] = ()
    sizes: dict[str, dict[int, int]] = {}  # noqa: RUF012  group → bits of the size of records → how many
    largest: dict[str, tuple[Place, ...]] = {}  # noqa: RUF012
    notes: tuple[str, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()


class Scanned(Record, frozen=True, omit_defaults=False):
    """One file."""

    path: str
    format: str
    size: int
    records: int
    identity: Identity
    errors: int = 0
    warnings: int = 0
    notes: tuple[str, ...] = ()


class Scan(Record, frozen=True, omit_defaults=False):
    """Everything that was found. `files` holds those with findings, or all of them on demand."""

    roots: tuple[str, ...]
    flaws: tuple[Flaw, ...]
    folder: str = ""  # relative paths begin here
    files: tuple[Scanned, ...] = ()
    flaws_untold: int = 0  # more errors in the same files, which were counted only
    warnings_untold: int = 0
    files_checked: int = 0
    files_unread: int = 0  # that could not even be opened
    files_passed_over: int = 0  # in no format that is known
    hidden: int = 0  # files and folders that were left out because their names begin with a dot
    records: int = 0
    bytes: int = 0
    decoded: int = 0
    seconds: float = 0.0
    engine: str = "local"
    resumed: int = 0  # pieces that an earlier run had finished
    unchecked: tuple[Unchecked, ...] = ()  # one for each kind of check
    problems: tuple[str, ...] = ()  # what could not be looked at, each in one sentence
    not_held: tuple[str, ...] = ()  # what the sandbox could not have kept a decoder from doing
    schema: int = SCHEMA_VERSION

    @property
    def errors(self) -> int:
        return number_of("error", self.flaws) + self.flaws_untold

    @property
    def warnings(self) -> int:
        return number_of("warning", self.flaws) + self.warnings_untold

    @property
    def is_grave(self) -> bool:
        return bool(self.errors or self.warnings)

    @property
    def unseen(self) -> int:
        """Files that could not be looked at, or not in full."""
        return len({flaw.place.path for flaw in self.flaws if flaw.kind == "unsupported"})
