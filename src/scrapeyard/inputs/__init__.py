"""From lists to items: CSV, JSON and URL lists, addresses of lists, sitemaps, and the links that pages have.

Any list first becomes a file of checked items (`spool`), which is then written to the store block by block
(`importer`). docs/design/jobs.md explains why.
"""
