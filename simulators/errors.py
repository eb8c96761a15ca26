"""The errors of the simulators.

FencepostError
└── FaultError
    └── DemoFailed             demo_failed
"""

from zones.errors import FaultError

__all__ = ["DemoFailed"]


class DemoFailed(FaultError):
    """The demo could not go on, or what it saw does not add up."""

    code = "demo_failed"
