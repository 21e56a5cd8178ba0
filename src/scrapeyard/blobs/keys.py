"""The only place that spells blob keys."""


def run_prefix(run_id: str) -> str:
    """Everything one run left."""
    return f"runs/{run_id}/"


def result(run_id: str, attempt: int) -> str:
    """A result too large for its row."""
    return f"runs/{run_id}/{attempt}/result.json"


def artifact(run_id: str, attempt: int, name: str) -> str:
    """Bytes a script kept. `name` has been checked against ARTIFACT_NAME."""
    return f"runs/{run_id}/{attempt}/artifacts/{name}"
