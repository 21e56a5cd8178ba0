"""Checks of the Kafka clusters that events are sent to and jobs read from."""

import asyncio
from collections.abc import AsyncIterator

from scrapeyard.cli.doctor.checks import CheckResult, fail, ok
from scrapeyard.errors import ScrapeyardError
from scrapeyard.extras import install, missing
from scrapeyard.settings import Settings

PATIENCE_SECONDS = 5.0


async def check_topics(settings: Settings) -> AsyncIterator[CheckResult]:
    """Whether each cluster answers, and how many of the topics that jobs may read are there. Creates nothing."""
    if url := settings.events.url.get_secret_value():
        yield await _check(settings, "events", "events.url", url, (settings.events.topic,))
    if url := settings.jobs.kafka_url.get_secret_value():
        yield await _check(settings, "kafka items", "jobs.kafka_url", url, settings.jobs.kafka_topics)


async def _check(settings: Settings, check: str, setting: str, url: str, topics: tuple[str, ...]) -> CheckResult:
    if words := missing("kafka"):
        return fail(check, words, f"run: {install('kafka')}")
    from fnmatch import fnmatchcase

    from scrapeyard.kafka.address import KafkaAddress
    from scrapeyard.kafka.link import KafkaLink
    from scrapeyard.kafka.records import KafkaLost, KafkaRefused
    from scrapeyard.redis.outage import Outage

    try:
        address = KafkaAddress(url, setting, str(settings.queue.ca_file or ""))
        link = KafkaLink(address, Outage(lambda *_: None, lambda *_: None, ends_on_stop=True))
        link.start()
    except ScrapeyardError as error:
        return fail(check, error.message, f"correct {setting}")
    try:
        found = await link.topics("", asyncio.get_running_loop().time() + PATIENCE_SECONDS)
    except (KafkaLost, KafkaRefused) as error:
        return fail(check, f"{address.hosts}: {error}", f"check {setting} and the brokers behind it")
    finally:
        await link.stop()
    there = [name for name in found if any(fnmatchcase(name, pattern) for pattern in topics)]
    return ok(check, f"{address.hosts}, {len(there)} of the topics {', '.join(topics)[:200] or '(none)'} there")
