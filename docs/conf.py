"""How `make docs` turns this folder into a site that needs no network to be read."""

project = "Scrapeyard"
author = "The Scrapeyard authors"
extensions = ["myst_parser"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # shortened JSON in the examples
exclude_patterns = ["site"]
html_theme = "furo"
html_title = "Scrapeyard"
html_copy_source = False
html_show_sphinx = False
highlight_language = "text"
