"""The errors of the agent and of its protocol.

FencepostError
├── PeerError
│   └── ProtocolViolation          protocol_violation      close code 4400
│       ├── FrameMalformed         frame_malformed
│       ├── FrameTooBig            frame_too_big           close code 1009
│       ├── HelloExpected          hello_expected
│       ├── HelloRepeated          hello_repeated
│       ├── HelloTimeout           hello_timeout
│       ├── ProtocolUnsupported    protocol_unsupported
│       ├── TooManyReports         too_many_reports
│       ├── ReportGap              report_gap
│       ├── PlanUnusable           plan_unusable
│       └── AnswerTimeout          answer_timeout
└── CallerError
    └── AgentError
        ├── AgentRevoked           agent_revoked
        ├── AgentReplaced          agent_replaced
        ├── CredentialInvalid      credential_invalid
        ├── EnrolmentFailed        enrolment_failed
        ├── ServerUnreachable      server_unreachable
        ├── StateFileInUse         state_file_in_use
        ├── StateFileUnusable      state_file_unusable
        ├── TraceInvalid           trace_invalid
        └── UrlInvalid             url_invalid
"""

from typing import ClassVar

from zones.errors import CallerError, PeerError

__all__ = [
    "AgentError", "AgentReplaced", "AgentRevoked", "AnswerTimeout", "CredentialInvalid", "EnrolmentFailed",
    "FrameMalformed", "FrameTooBig", "HelloExpected", "HelloRepeated", "HelloTimeout", "PlanUnusable",
    "ProtocolUnsupported", "ProtocolViolation", "ReportGap", "ServerUnreachable", "StateFileInUse",
    "StateFileUnusable", "TooManyReports", "TraceInvalid", "UrlInvalid",
]  # fmt: skip


class ProtocolViolation(PeerError):
    """The other end did not keep to docs/protocol.md; the connection is closed with `close_code`."""

    code = "protocol_violation"
    close_code: ClassVar[int] = 4400


class FrameMalformed(ProtocolViolation):
    code = "frame_malformed"


class FrameTooBig(ProtocolViolation):
    code = "frame_too_big"
    close_code = 1009


class HelloExpected(ProtocolViolation):
    code = "hello_expected"


class HelloRepeated(ProtocolViolation):
    code = "hello_repeated"


class HelloTimeout(ProtocolViolation):
    code = "hello_timeout"


class ProtocolUnsupported(ProtocolViolation):
    code = "protocol_unsupported"


class TooManyReports(ProtocolViolation):
    code = "too_many_reports"


class ReportGap(ProtocolViolation):
    """An edge's number is not the next one: the device and the server no longer speak of the same history."""

    code = "report_gap"


class PlanUnusable(ProtocolViolation):
    code = "plan_unusable"


class AnswerTimeout(ProtocolViolation):
    code = "answer_timeout"


class AgentError(CallerError):
    code = "agent_error"


class AgentRevoked(AgentError):
    """The credential is not, or no longer, valid: this agent has ended for good."""

    code = "agent_revoked"


class AgentReplaced(AgentError):
    """Somebody else keeps connecting with the same credential."""

    code = "agent_replaced"


class CredentialInvalid(AgentError):
    code = "credential_invalid"


class EnrolmentFailed(AgentError):
    code = "enrolment_failed"


class ServerUnreachable(AgentError):
    code = "server_unreachable"


class StateFileInUse(AgentError):
    code = "state_file_in_use"


class StateFileUnusable(AgentError):
    code = "state_file_unusable"


class TraceInvalid(AgentError):
    code = "trace_invalid"


class UrlInvalid(AgentError):
    code = "url_invalid"
