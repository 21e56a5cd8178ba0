"""What all branches of the tree have in common."""

import json
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Section(BaseModel):
    """A branch of the tree. Unknown keys are refused; a list may be written with commas, or as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _split_list(cls, value: object, info: Any) -> object:
        annotation = cls.model_fields[info.field_name].annotation
        if not isinstance(value, str) or getattr(annotation, "__origin__", None) is not tuple:
            return value
        parts = _parts(value.strip())
        if parts and isinstance(kind := get_args(annotation)[0], type) and issubclass(kind, Section):
            raise ValueError("a list of tables, which only the file can hold; write [[…]] sections there")
        return parts


def branch() -> Any:
    """The field of a branch, by default with the defaults of its own fields. These are validated with the whole tree:
    an instance would have to build a validator for the branch alone, at each start of a command."""
    return Field(default_factory=dict)


def _parts(text: str) -> tuple[object, ...]:
    if not text.startswith("["):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return tuple(json.loads(text))
    except ValueError:
        raise ValueError("neither a JSON list nor words with commas between them") from None
