"""The built-in scrapers that read pages, in a thread."""

from scrapeyard.builtin.reading.thread import ThreadExtractor
from scrapeyard.builtin.registry import make_builtins

BUILTINS = make_builtins(ThreadExtractor())
