"""Scrapers of a package: the entry points of pyproject.toml name their modules."""
