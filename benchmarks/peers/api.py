"""The request every FastAPI peer takes."""

from typing import Any

from pydantic import BaseModel


class Call(BaseModel):
    """An input for the script."""

    input: dict[str, Any] = {}
