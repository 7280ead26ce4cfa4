"""faultlens: the crash doctor for TensorFlow programs and the native Python stack under them."""

__version__ = "0.1.0"


def install() -> None:
    """Remember, in this program, which lines made the nodes of its graphs, and how far it has come.

    For programs that are not started by `faultlens run`, which needs no such call. If the program dies,
    `faultlens explain CORE` tells what was remembered."""
    from faultlens.home import home
    from faultlens.inside.live import install as install_here

    install_here(home())
