"""All blob keys are built here."""

from typing import Final, Literal

ManifestKind = Literal["full", "success", "errors"]
MANIFESTS: Final[tuple[ManifestKind, ...]] = ("full", "success", "errors")
HTML: Final = "html.html"
DATA: Final = "data.json"
METADATA: Final = "metadata.json"
SCREENSHOT: Final = "screenshot.png"
ITEM_OBJECTS: Final = (HTML, DATA, METADATA, SCREENSHOT)
"""Objects an item may have besides the artifacts of its script. The last is one that the script or a built-in took."""


def run_prefix(run_id: str) -> str:
    """Everything one run left."""
    return f"runs/{run_id}/"


def result(run_id: str, attempt: int) -> str:
    """A result too large for its row."""
    return f"runs/{run_id}/{attempt}/result.json"


def artifact(run_id: str, attempt: int, name: str) -> str:
    """Bytes a script stored. `name` has been checked against ARTIFACT_NAME."""
    return f"runs/{run_id}/{attempt}/artifacts/{name}"


def job_prefix(job_id: str) -> str:
    """Everything one job left."""
    return f"{job_id}/"


def list_prefix(job_id: str) -> str:
    """Prefix of a job's spooled list, before its items are in the store."""
    return f"{job_id}/list/"


def job_list(job_id: str) -> str:
    """The items of its list, checked, in order."""
    return f"{job_id}/list/items"


def result_prefixes(job_id: str) -> list[str]:
    """What was made of the results of a job's items."""
    return [f"{job_id}/{name}/" for name in ("manifests", "changes", "exports")]


def item_prefix(job_id: str, item: str) -> str:
    """Every object of one item."""
    return f"{job_id}/items/{item}/"


def item_object(job_id: str, item: str, name: str) -> str:
    """One of ITEM_OBJECTS. `item` is the item's key, checked against ITEM_KEY."""
    return f"{job_id}/items/{item}/{name}"


def item_artifact(job_id: str, item: str, name: str) -> str:
    """Bytes an item's script stored, in their own folder: their names never clash with those of ITEM_OBJECTS."""
    return f"{job_id}/items/{item}/artifacts/{name}"


def manifest(job_id: str, kind: ManifestKind, part: int) -> str:
    """One part of a manifest; parts are counted from 1."""
    return f"{job_id}/manifests/{kind}/part-{part}.json"


def manifest_index(job_id: str) -> str:
    """The parts of a job's manifests that there are, also while it runs."""
    return f"{job_id}/manifests/index.json"


def item_manifest(job_id: str, item: str) -> str:
    """What one item left, with sizes and digests. `item` is the item's key, checked against ITEM_KEY."""
    return f"{job_id}/manifests/items/{item}.json"


def job_metadata(job_id: str) -> str:
    """Summary of a finished job; it lists the existing parts."""
    return f"{job_id}/job_metadata.json"


def archive(job_id: str, archive_id: str) -> str:
    """The rows of an archived job's items. Each attempt has a key of its own, so that none overwrites another."""
    return f"{job_id}/archive/{archive_id}.zst"


def changes(job_id: str, part: int) -> str:
    """One part of the changes since the previous crawl; parts are counted from 1."""
    return f"{job_id}/changes/part-{part}.json"


def changes_metadata(job_id: str) -> str:
    """Number of parts of changes, and their totals."""
    return f"{job_id}/changes/metadata.json"


def export(job_id: str, export_id: str, name: str) -> str:
    """A file made of a job."""
    return f"{job_id}/exports/{export_id}/{name}"
