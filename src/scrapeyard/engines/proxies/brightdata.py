"""Bright Data: one endpoint, where the user name says which exit is wanted.

    brd-customer-<customer>-zone-<zone>[-country-xx][-state-yy][-city-zzz][-session-<id>]

The same session is the same exit for as long as the vendor has it. Datacenter zones know countries alone; states are
those of the United States; a state or city needs a country. Port 33335 goes with the vendor's present certificate
authority, which the unlocker and, until an account is verified, residential zones need to be trusted (`ca_file`).
"""

from scrapeyard.engines.proxies.place import Place
from scrapeyard.model.fetching import ProxyAddress, read_endpoint
from scrapeyard.settings import ProxyPool

ENDPOINT = "brd.superproxy.io:33335"


def endpoint(pool: ProxyPool) -> tuple[str, int]:
    """Where the vendor listens."""
    return read_endpoint(pool.host or ENDPOINT)


def address(pool: ProxyPool, place: Place, session: str) -> ProxyAddress:
    """The exit of a session at a place that `served` has passed."""
    host, port = endpoint(pool)
    asked = {"country": place.country, "state": place.state, "city": place.city, "session": session}
    options = "".join(f"-{name}-{value}" for name, value in asked.items() if value)
    return ProxyAddress(
        scheme="http",
        host=host,
        port=port,
        user=f"brd-customer-{pool.customer}-zone-{pool.zone}{options}",
        password=pool.password.get_secret_value(),
    )


def served(pool: ProxyPool, asked: Place) -> tuple[Place, str]:
    """What of a place the zone can serve, and why not the rest; empty: it serves all of it."""
    country = asked.country or pool.country.lower()
    if pool.proxy_class == "datacenter" and (asked.state or asked.city):
        return Place(country=country), "datacenter zones know countries alone"
    if not country and (asked.state or asked.city):
        return Place(), "a state or city needs a country"
    return Place(country=country, state=asked.state, city=asked.city), ""
