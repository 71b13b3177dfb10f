"""What all JSON objects of realtime clients have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator


class Wire(BaseModel):
    """A client's JSON object: unknown keys are refused, nulls mean that a key was left out.

    Attributes:
        nullable: Keys where null is a value of its own.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    nullable: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = cls.model_fields
        return {
            key: value
            for key, value in data.items()
            if value is not None
            or key in cls.nullable
            or key not in fields
            or fields[key].is_required()
        }

    def given(self, name: str) -> bool:
        """Whether the client's object had this key."""
        return name in self.model_fields_set
