"""From lists to items: CSV, JSON and URL lists, addresses of lists, sitemaps, and the links that pages have.

Whatever a list is, it becomes a file of checked items first (`spool`), which is then written to the store block by
block (`importer`). docs/design/jobs.md tells why.
"""
