"""Scrapeyard: a self-hosted Lambda for scrapers."""

__version__ = "0.1.0"
