"""The built-in scraper `builtin/actions`: steps in a browser, written as JSON."""
