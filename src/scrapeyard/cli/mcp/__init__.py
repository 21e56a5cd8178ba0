"""`scrapeyard mcp`: the tools of a server for programs that speak the Model Context Protocol."""
