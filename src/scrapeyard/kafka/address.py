"""Where a Kafka cluster is and how to log in, read from a URL. Imports no Kafka library."""

import re
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from scrapeyard.errors import SettingsInvalid

SCHEMES = ("kafka", "kafka+ssl")
MAX_MESSAGE_BYTES = 1_000_000
"""What brokers take unless they are told otherwise; librdkafka's `message.max.bytes`."""
_MESSAGE_BYTES = range(10_000, 1_000_000_001)
"""Less would be used up by what surrounds a record; librdkafka takes no more."""
_OWN = frozenset(
    (
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "group.protocol",
        "metadata.broker.list",
        "partition.assignment.strategy",
        "plugin.library.paths",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "transactional.id",
    )
)
"""Properties that the URL has another place for, or that our own code relies on."""
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NAME = re.compile(r"[a-z][a-z0-9._]{1,60}")


class KafkaAddress:
    """kafka://user:password@host:port,host:port?option=value; kafka+ssl:// encrypts. Raises SettingsInvalid, without
    the password. `setting` is named in the error.

    A login means SASL, by the mechanism PLAIN unless the option `sasl.mechanism` says another. Options are properties
    of librdkafka, such as `ssl.certificate.location`.
    """

    def __init__(self, url: str, setting: str = "queue.url", ca_file: str = "") -> None:
        self._setting = setting
        scheme, _, rest = url.partition("://")
        login, _, place = rest.partition("?")[0].rstrip("/").rpartition("@")
        try:
            if scheme not in SCHEMES:
                raise ValueError(scheme)
            self.hosts = ",".join(_host(host) for host in place.split(","))
            query = rest.partition("?")[2]
            self.options: dict[str, Any] = dict(parse_qsl(query, strict_parsing=True)) if query else {}
        except ValueError:
            raise SettingsInvalid(
                f"{setting}: write kafka://user:password@host:port (kafka+ssl:// for TLS), several hosts with commas, "
                "options of librdkafka after a `?`, and percent-encode special characters in the password"
            ) from None
        for name in self.options:
            if name in _OWN or not _NAME.fullmatch(name):
                raise SettingsInvalid(f"{setting}: the option {name[:80]!r} cannot be set there")
        self.max_message_bytes = self._size("message.max.bytes", MAX_MESSAGE_BYTES)
        """The largest record that is sent."""
        user, _, password = login.partition(":")
        is_ssl = scheme == "kafka+ssl"
        if user:
            self.options["sasl.username"], self.options["sasl.password"] = unquote(user), unquote(password)
            self.options.setdefault("sasl.mechanism", "PLAIN")
            self.options["security.protocol"] = "sasl_ssl" if is_ssl else "sasl_plaintext"
        elif is_ssl:
            self.options["security.protocol"] = "ssl"
        if ca_file:
            self.options["ssl.ca.location"] = _readable(ca_file)

    def _size(self, option: str, default: int) -> int:
        text = self.options.get(option, str(default))
        size = int(text) if re.fullmatch(r"[0-9]{1,10}", text) else 0
        if size not in _MESSAGE_BYTES:
            least, most = _MESSAGE_BYTES[0], _MESSAGE_BYTES[-1]
            raise SettingsInvalid(f"{self._setting}: {option} is a number of bytes from {least} to {most}")
        return size

    def client(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """The properties of a client. Those of its own give way to the options of the URL."""
        return {
            "bootstrap.servers": self.hosts,
            "client.id": "scrapeyard",
            "reconnect.backoff.max.ms": 1000,
            "log_level": 1,
            **own,
            **self.options,
        }

    def refused(self, error: Exception) -> SettingsInvalid:
        """For an option that librdkafka does not take."""
        return SettingsInvalid(f"{self._setting}: {str(error)[:200]}")


def split_topic(url: str, setting: str) -> tuple[str, str]:
    """kafka://host:port/topic?option=value without its topic, and the topic. Raises SettingsInvalid."""
    place, mark, query = url.partition("?")
    scheme, _, rest = place.partition("://")
    hosts, _, topic = rest.partition("/")
    check_topic(topic, setting)
    return f"{scheme}://{hosts}{mark}{query}", topic


def check_topic(topic: str, setting: str) -> None:
    """Raises SettingsInvalid unless Kafka takes such a name."""
    if not TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise SettingsInvalid(f"{setting}: name a topic of up to 249 letters, digits, dots, dashes and underscores")


def _host(host: str) -> str:
    parts = urlsplit(f"kafka://{host}")
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in host:
        raise ValueError(host)
    return f"{parts.hostname if ':' not in parts.hostname else f'[{parts.hostname}]'}:{parts.port or 9092}"


def _readable(ca_file: str) -> str:
    try:
        ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise SettingsInvalid(f"queue.ca_file: {ca_file} cannot be read as PEM") from None
    return ca_file
