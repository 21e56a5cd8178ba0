"""The built-in scraper `builtin/replay`: recordings of Chrome's DevTools, performed as they are."""
