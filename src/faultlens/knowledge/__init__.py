"""What is known beforehand: TensorFlow's ops, and crashes of them that were published or tried.

`advisories.json` holds facts from the PyPA advisory database (https://github.com/pypa/advisory-database, CC-BY-4.0),
made by tools/write_advisories.py. `tried.json` is our own: tools/try_ops.py ran each call on several releases."""

from faultlens.knowledge.crashes import Known, all_known_crashes, known_crashes

__all__ = ["Known", "all_known_crashes", "known_crashes"]
