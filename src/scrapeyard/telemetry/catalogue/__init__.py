"""The words of every event, in English and Korean. A test checks that none is missing and that both use equal fields.

A name is `part.what_happened`; the words for one part stand in one module, sorted by name.
"""

from scrapeyard.telemetry.catalogue import backends, dispatch, engines, gateway, repository, worker

PAGES = (backends.WORDS, dispatch.WORDS, engines.WORDS, gateway.WORDS, repository.WORDS, worker.WORDS)
WORDS = {event: words for page in PAGES for event, words in page.items()}
