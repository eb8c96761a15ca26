"""Write docs/reference/errors.md from the error classes: `python -m tests.support.error_reference`."""

import importlib
import re
from pathlib import Path

from tests.support.sources import ROOT, modules
from zones.errors import CallerError, FaultError, FencepostError, PeerError

__all__ = ["REFERENCE", "error_classes", "reference_text"]

REFERENCE = ROOT / "docs" / "reference" / "errors.md"
_FAULTS = (
    (CallerError, "The caller's", "Something in a request, a command or a file can't be used; nothing has changed."),
    (PeerError, "The peer's", "The other end of a connection did not keep to the protocol; the connection is closed."),
    (FaultError, "Ours", "Something went wrong on our side; trying again later may help."),
)


def error_classes() -> list[type[FencepostError]]:
    """Every error class of every package, the root itself left out: it is never raised."""
    for module in modules():
        if module.package != "migrations" and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[FencepostError]] = []
    waiting = list(FencepostError.__subclasses__())
    while waiting:
        error = waiting.pop()
        waiting += error.__subclasses__()
        if not error.__module__.startswith("tests."):
            found.append(error)
    return sorted(set(found), key=lambda error: (error.code, error.__mro__.__len__(), error.__module__))


def reference_text() -> str:
    """The whole page."""
    lines = [
        "# Errors",
        "",
        "Every error has a stable `code`, one sentence with the values in it, and mostly a hint that says what to do.",
        "Programs look at the code; the wording is free to improve. Over HTTP an error is a problem document of RFC",
        "9457 with the member `code`; the command line prints the sentence on stderr.",
        "",
        "This page is written by `python -m tests.support.error_reference`; a test compares it with the classes.",
    ]
    for kind, whose, meaning in _FAULTS:
        lines += ["", f"## {whose}", "", meaning, "", "| code | meaning | class |", "|---|---|---|"]
        told = set()
        for error in error_classes():
            if issubclass(error, kind) and error.code not in told:
                told.add(error.code)
                lines.append(f"| `{error.code}` | {_meaning(error)} | `{error.__module__}.{error.__name__}` |")
    return "\n".join(lines) + "\n"


def _meaning(error: type[FencepostError]) -> str:
    """The first paragraph of its docstring; a class without one says it all with its name."""
    own = vars(error).get("__doc__")
    if own:
        return " ".join(own.strip().split("\n\n")[0].split()).replace("|", "\\|")
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", error.__name__).lower()
    return f"{words[0].upper()}{words[1:]}."


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(reference_text(), encoding="utf-8")


if __name__ == "__main__":
    _write(REFERENCE)
    print(REFERENCE.relative_to(ROOT))
