"""Settings of logs and traces."""

from typing import Literal

from pydantic import Field

from scrapeyard.settings.section import Section


class LogSettings(Section):
    """Logs, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level shown.")
    format: Literal["auto", "human", "json"] = Field("auto", description="auto: human on a terminal, JSON otherwise.")
    lang: Literal["en", "ko"] = Field("en", description="Language of the messages.")


class TelemetrySettings(Section):
    """Traces."""

    otlp_endpoint: str = Field("", description="OTLP over HTTP, e.g. http://127.0.0.1:4318; empty: no traces.")
