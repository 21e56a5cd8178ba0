"""Parameters that several routes take, bounded."""

from typing import Annotated

from fastapi import Path, Query

from scrapeyard.gateway.runs.schemas import EXAMPLE_ID, RUN_ID

RunId = Annotated[str, Path(pattern=RUN_ID, description="The run's id.", examples=[EXAMPLE_ID])]
Wait = Annotated[float, Query(ge=0, le=3600, allow_inf_nan=False, description="Seconds to wait for the end.")]
