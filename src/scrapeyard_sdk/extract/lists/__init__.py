"""Lists without labels: the repeated records of a listing page, and the link to its next page."""

from scrapeyard_sdk.extract.lists.next_page import read_next_page
from scrapeyard_sdk.extract.lists.records import RecordList, read_records

__all__ = ["RecordList", "read_next_page", "read_records"]
