"""Settings of the HTTP API."""

from pydantic import Field

from scrapeyard.settings.section import Section


class GatewaySettings(Section):
    """The HTTP API."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    wait_seconds: float = Field(30, gt=0, le=300, description="How long a call waits when it does not say.")
    max_wait_seconds: float = Field(300, gt=0, le=3600, description="The longest a call may wait.")
    max_body_mb: float = Field(10, gt=0, le=1024, description="Larger request bodies are refused before they are read.")
    max_upload_mb: float = Field(2048, gt=0, le=20_480, description="The same for lists of items that are uploaded.")
    max_urls: int = Field(1000, ge=1, le=100_000, description="URLs in one call.")
    max_backlog: int = Field(10_000, ge=1, description="Runs that may wait in one lane; beyond it calls get 503.")
    max_waiting: int = Field(2000, ge=1, description="Calls that may wait for an answer at once; beyond it 429.")
    max_streams: int = Field(500, ge=1, description="Jobs that may be watched live at once; beyond it 429.")
    cors_origins: tuple[str, ...] = Field((), description="Origins that browsers may call from; `*` for any.")
