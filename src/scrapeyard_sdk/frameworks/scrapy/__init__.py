"""Runs a spider of a Scrapy project as a scraper; `scrapeyard import scrapy` writes the script that does so."""

from scrapeyard_sdk.frameworks.scrapy.project import ScrapyProject

__all__ = ["ScrapyProject"]
