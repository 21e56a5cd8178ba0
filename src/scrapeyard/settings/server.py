"""Settings of workers: what they take, the walls around children, and what a run may use."""

from typing import Literal

from pydantic import Field

from scrapeyard.model import Limits
from scrapeyard.settings.section import Section


class WorkerSettings(Section):
    """Taking and running."""

    slots: int = Field(0, ge=0, le=1024, description="Runs at once; 0 means four per core.")
    reserved_slots: int = Field(-1, ge=-1, description="Slots kept for priority high; -1: a quarter, at least one.")
    lanes: tuple[str, ...] = Field(("default",), min_length=1, description="Lanes this worker takes from.")
    heartbeat_seconds: float = Field(2, gt=0, le=60, description="Between heartbeats.")
    lease_seconds: float = Field(15, gt=1, le=600, description="A run is another's when its worker was silent so long.")
    drain_seconds: float = Field(20, ge=0, le=600, description="On SIGTERM, how long running work may finish.")
    ahead: int = Field(2, ge=0, le=64, description="Children forked ahead of need for each busy scraper.")
    idle_scraper_seconds: float = Field(120, gt=0, description="A loaded scraper unused so long is let go.")
    max_scrapers: int = Field(32, ge=1, description="Loaded scrapers kept at once; the least recently used goes.")


class SandboxSettings(Section):
    """Walls around children."""

    mode: Literal["auto", "strict", "off"] = Field(
        "auto", description="auto: every wall the kernel has; strict: refuse to start without all; off: none."
    )
    without: tuple[str, ...] = Field((), description="Walls to leave out, by the names that `doctor` prints.")
    uid_base: int = Field(2_000_000, ge=1000, description="As root, each scraper runs under a user id from here on.")
    direct_network: tuple[str, ...] = Field(
        (), description='Scrapers (by id) that are granted the network = "direct" they ask for.'
    )
    load_seconds: float = Field(20, gt=0, le=600, description="How long a script may take to load.")


class LimitSettings(Section):
    """The ceiling for every scraper's own limits."""

    wall_seconds: float = Field(300, gt=0, description="Wall clock.")
    cpu_seconds: float = Field(300, gt=0, description="Processor time.")
    memory_mb: int = Field(2048, ge=16, description="Memory beyond the bare interpreter's.")
    disk_mb: int = Field(1024, ge=1, description="Files in the run's own folder.")
    output_mb: float = Field(100, gt=0, description="Result as JSON.")
    log_kb: int = Field(4096, ge=1, description="stdout, stderr and logs together.")
    artifact_mb: float = Field(500, gt=0, description="Artifacts together.")
    threads: int = Field(256, ge=1, description="Threads.")
    fetches: int = Field(100_000, ge=1, description="Requests to the web.")

    def as_limits(self) -> Limits:
        """The same as the model's noun."""
        return Limits(**self.model_dump())
