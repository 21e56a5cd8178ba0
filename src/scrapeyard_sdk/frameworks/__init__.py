"""Other frameworks inside a script: their engine runs here, and their requests go through `ctx.fetch`.

Nothing of the SDK imports these modules. A scraper that uses one has the framework in its requirements.
"""
