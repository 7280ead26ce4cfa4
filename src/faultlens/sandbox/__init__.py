"""The one sandbox of faultlens, for whatever runs or reads what somebody else wrote.

`guard.enter` puts a process into namespaces of its own, below one that ends all it started; `confinement.confine` takes
from it what it does not need. Needs nothing but the standard library, from Python 3.9 on, and imports nothing else of
faultlens: it runs in the Python of the user's programs as well, where `load` of those programs' starters finds it."""
