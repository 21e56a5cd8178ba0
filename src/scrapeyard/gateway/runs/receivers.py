"""Validates the webhooks of calls."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.model.webhook import Webhook, secret_place
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.settings import WebhookSettings

_NO_SECRET: Final = "give webhook.secret, 16 characters or more; the operator has set no webhooks.secret for all"  # noqa: S105  words


class WebhookRequest(Protocol):
    """The fields that all webhook requests share."""

    @property
    def url(self) -> str:
        """URL of the receiver."""

    @property
    def events(self) -> Sequence[str]:
        """What it is notified of."""

    @property
    def secret(self) -> str | None:
        """None if the operator's secret is used."""


class WebhookValidator:
    """Refuses webhooks that could not be signed, or whose URL cannot be requested. Seals the secrets of the others."""

    def __init__(self, settings: WebhookSettings, sealer: Sealer) -> None:
        self._has_secret = bool(settings.secret.get_secret_value())
        self._sealer = sealer

    def check(self, asked: WebhookRequest) -> None:
        """Raise BadRequest if it must be refused. A private address is detected only when the webhook is sent."""
        if asked.secret is None and not self._has_secret:
            raise BadRequest(_NO_SECRET)
        try:
            parse_target(asked.url)
        except FetchFailed as failure:
            raise BadRequest(f"webhook.url: {failure.message}") from None

    def accept(self, asked: WebhookRequest) -> Webhook:
        """The webhook as stored: with its secret sealed. Raises BadRequest."""
        self.check(asked)
        secret = None if asked.secret is None else self._sealer.seal_text(asked.secret, secret_place(asked.url))
        form, metadata = getattr(asked, "form", ""), getattr(asked, "metadata", {})
        return Webhook(url=asked.url, events=tuple(asked.events), secret=secret, form=form, metadata=metadata)

    def seal_template(self, template: dict[str, Any]) -> dict[str, Any]:
        """What a schedule starts, with the secret of its webhook sealed."""
        return _with_secret(template, self._sealer.seal_text)

    def open_template(self, template: dict[str, Any]) -> dict[str, Any]:
        """The reverse. Raises SealBroken."""
        return _with_secret(template, self._sealer.open_text)


def _with_secret(template: dict[str, Any], change: Callable[[str, str], str]) -> dict[str, Any]:
    webhook = template.get("webhook")
    if not webhook or not webhook.get("secret"):
        return template
    return {**template, "webhook": {**webhook, "secret": change(webhook["secret"], secret_place(webhook["url"]))}}
