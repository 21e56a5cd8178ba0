"""Scrapy projects, read without running them, and the scrapers made of them."""
