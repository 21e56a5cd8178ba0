"""Which way to a page: the cheapest that works at the site, and the next when it is blocked."""
