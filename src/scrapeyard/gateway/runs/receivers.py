"""Validates the webhooks of calls."""

from typing import Final, Protocol

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.gateway.runs.schemas import RunWebhookCall
from scrapeyard.model.webhook import Webhook
from scrapeyard.settings import WebhookSettings

_NO_SECRET: Final = "give webhook.secret, 16 characters or more; the operator has set no webhooks.secret for all"  # noqa: S105  words


class WebhookRequest(Protocol):
    """The fields that all webhook requests share."""

    @property
    def url(self) -> str:
        """URL of the receiver."""

    @property
    def secret(self) -> str | None:
        """None if the operator's secret is used."""


class WebhookValidator:
    """Refuses webhooks that could not be signed, or whose URL cannot be requested."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._has_secret = bool(settings.secret.get_secret_value())

    def check(self, asked: WebhookRequest) -> None:
        """Raise BadRequest if it must be refused. A private address is detected only when the webhook is sent."""
        if asked.secret is None and not self._has_secret:
            raise BadRequest(_NO_SECRET)
        try:
            parse_target(asked.url)
        except FetchFailed as failure:
            raise BadRequest(f"webhook.url: {failure.message}") from None

    def of_run(self, asked: RunWebhookCall) -> Webhook:
        """The webhook as stored. Raises BadRequest."""
        self.check(asked)
        return Webhook(url=asked.url, events=tuple(asked.events), secret=asked.secret)
