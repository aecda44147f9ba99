"""Standard input and output, and the words of the command line, whatever the environment made of
them."""

import codecs
import errno
import os
import sys

#: The name of the error handler of standard output.
ESCAPE = "headgate.escape"
#: Errors of a file, pipe or terminal that takes no more output.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def prepare_streams() -> None:
    """Replace closed streams, and write characters that the encoding of standard output does not
    have as escape sequences."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 # open until the end
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    codecs.register_error(ESCAPE, escape_characters)
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        reconfigure(errors=ESCAPE)


def escape_characters(error: UnicodeError) -> tuple[str, int]:
    r"""``\u2714``: as in JSON, so that a document stays one."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs), error.end


def discard_output() -> None:
    """Keep Python from writing again at its end what could not be written."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


def undecodable_word() -> str | None:
    """The first argument or variable of Headgate with bytes that its encoding does not have."""
    arguments = (
        f'the argument "{_escape_bytes(one)}"' for one in sys.argv[1:] if not _is_text(one)
    )
    variables = (
        f"the variable {name}"
        for name, value in os.environ.items()
        if name.startswith("HEADGATE_") and not _is_text(value)
    )
    return next(arguments, None) or next(variables, None)


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape_bytes(word: str) -> str:
    r"""With ``\xdf`` for such a byte."""
    return os.fsencode(word).decode("utf-8", "backslashreplace")
