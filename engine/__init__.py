"""The stage runtime: pipelines of model stages inside the server's own process.

Everything named here may be used by `app`; it imports neither torch nor vLLM until an engine is
started, so that environment variables which both read at import can be set before.
"""

from engine.abort import AbortReason
from engine.chunk import (
    AudioPayload,
    Chunk,
    TextPayload,
    ToolCallPayload,
    UsagePayload,
    WordTiming,
)
from engine.errors import (
    ConfigurationError,
    EngineClosedError,
    EngineError,
    EngineOverloadedError,
    ErrorCode,
    InvalidRequestError,
    StageError,
)
from engine.pipeline_config import describe_pipeline
from engine.request import (
    AudioContent,
    Chat,
    ChatMessage,
    EngineHealth,
    OmniRequest,
    PictureContent,
    PipelineDescription,
    SpeechParameters,
    StageStatus,
    TextReport,
    Tool,
    ToolCall,
    VoiceDescription,
)
from engine.text_input import TextInput
from engine.timeline import RequestTimes, StageTimes

__all__ = [
    "AbortReason",
    "AudioContent",
    "AudioPayload",
    "Chat",
    "ChatMessage",
    "Chunk",
    "ConfigurationError",
    "EngineClosedError",
    "EngineError",
    "EngineHealth",
    "EngineOverloadedError",
    "ErrorCode",
    "InvalidRequestError",
    "OmniRequest",
    "PictureContent",
    "PipelineDescription",
    "RequestTimes",
    "SpeechParameters",
    "StageError",
    "StageStatus",
    "StageTimes",
    "TextInput",
    "TextPayload",
    "TextReport",
    "Tool",
    "ToolCall",
    "ToolCallPayload",
    "UsagePayload",
    "VoiceDescription",
    "WordTiming",
    "describe_pipeline",
]
