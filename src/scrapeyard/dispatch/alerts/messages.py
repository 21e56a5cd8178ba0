"""Alerts as messages: one delivery for each receiver, in the outbox of webhooks.

A delivery names its channel (`alert:slack`) and not its address, which may be a secret. The sender reads the address
from the settings.
"""

import asyncio
import smtplib
import ssl
import time
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace

from scrapeyard import __version__
from scrapeyard.dispatch.webhooks.sending import MAX_ERROR, Sender
from scrapeyard.engines.port import FetchRequest, HttpEngine
from scrapeyard.model import new_id
from scrapeyard.model.audit import cleaned
from scrapeyard.model.instants import instant
from scrapeyard.model.webhook import Attempt, DeliveryState, WebhookDelivery, delivery_id
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.settings import AlertSettings, WebhookSettings
from scrapeyard.store.ports.webhooks import Alert

CHANNEL: Final = "alert:"
FIRING, RESOLVED, TEST = "alert.firing", "alert.resolved", "alert.test"
_HOUR: Final = 3600.0
_TITLES: Final = {FIRING: "ALERT", RESOLVED: "resolved", TEST: "test"}


def messages(
    settings: AlertSettings, alert: Alert, event: str, now: float, give_up_hours: float
) -> list[WebhookDelivery]:
    """One delivery for each channel that is set."""
    body = msgspec.json.encode({"event": event, "alert": alert_document(alert)})
    return [
        WebhookDelivery(
            id=delivery_id(f"{alert.id}/{channel}", event, alert.tells, now),
            subject=alert.id,
            event=event,
            url=CHANNEL + channel,
            host=CHANNEL + channel,
            body=body,
            created_at=now,
            next_at=now,
            give_up_at=now + give_up_hours * _HOUR,
        )
        for channel in settings.channels
    ]


def alert_document(alert: Alert) -> dict[str, Any]:
    """An alert as receivers and callers of the API see it."""
    shown = asdict(alert)
    for name in ("started_at", "told_at", "resolved_at"):
        shown[name] = None if shown[name] is None else instant(shown[name])
    return shown


def test_alert(now: float) -> Alert:
    """What `alerts test` sends."""
    return Alert(
        id=new_id("alert"),
        rule="test",
        subject="all",
        words="this is a test; nothing is wrong",
        value=0.0,
        threshold=0.0,
        started_at=now,
        told_at=now,
    )


class AlertSender(Sender):
    """Sends alerts to their channels, and everything else as webhooks. It retries both alike."""

    def __init__(
        self,
        settings: WebhookSettings,
        engine: HttpEngine,
        sealer: Sealer,
        clock: Callable[[], float],
        alerts: AlertSettings,
    ) -> None:
        super().__init__(settings, engine, sealer, clock)
        self._alerts = alerts

    async def send(self, delivery: WebhookDelivery) -> WebhookDelivery:
        """Send it once; returns the updated delivery. Never raises for an error of the receiver."""
        if not delivery.url.startswith(CHANNEL):
            return await super().send(delivery)
        channel = delivery.url.removeprefix(CHANNEL)
        if channel not in self._alerts.channels:
            attempt = Attempt(at=self._clock(), error=f"the settings have no receiver for {channel} any more")
            return self._over(delivery, attempt, DeliveryState.FAILED)
        if channel == "email":
            return await self._send_mail(delivery)
        url = (self._alerts.slack_url if channel == "slack" else self._alerts.webhook_url).get_secret_value()
        sent = await super().send(replace(delivery, url=url))
        return replace(sent, url=delivery.url, log=tuple(_without(url, attempt) for attempt in sent.log))

    def _secret(self, delivery: WebhookDelivery) -> str:
        if not delivery.host.startswith(CHANNEL):
            return super()._secret(delivery)
        return self._alerts.webhook_secret.get_secret_value() or delivery.host  # Slack's address is the secret

    def _request(self, delivery: WebhookDelivery, secret: str, now: float) -> FetchRequest:
        if delivery.host != CHANNEL + "slack":
            return super()._request(delivery, secret, now)
        headers = {"Content-Type": "application/json", "User-Agent": f"Scrapeyard-Alerts/{__version__}"}
        title, text = _words(delivery)
        request = super()._request(delivery, secret, now)
        return replace(request, headers=headers, body=msgspec.json.encode({"text": f"*{title}*\n{text}"}))

    async def _send_mail(self, delivery: WebhookDelivery) -> WebhookDelivery:
        began, at = time.perf_counter(), self._clock()
        try:
            await asyncio.to_thread(self._mail, delivery)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            words = f"{type(error).__name__}: {error}"[:MAX_ERROR]
            attempt = Attempt(at=at, ms=(time.perf_counter() - began) * 1000, error=words)
            return self._later(delivery, attempt, 0.0)
        return self._over(delivery, Attempt(at=at, ms=(time.perf_counter() - began) * 1000), DeliveryState.DELIVERED)

    def _mail(self, delivery: WebhookDelivery) -> None:
        """Raises OSError or SMTPException. A message that arrives twice has the same Message-ID."""
        settings, seconds = self._alerts, self._settings.timeout_seconds
        title, text = _words(delivery)
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = title, settings.email_from, ", ".join(settings.email_to)
        mail["Message-ID"] = f"<{delivery.id}@scrapeyard>"
        mail.set_content(text)
        kind = smtplib.SMTP_SSL if settings.smtp_security == "tls" else smtplib.SMTP
        more: dict[str, Any] = {"context": ssl.create_default_context()} if settings.smtp_security == "tls" else {}
        with kind(settings.smtp_host, settings.smtp_port, timeout=seconds, **more) as server:
            if settings.smtp_security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if settings.smtp_user:
                server.login(settings.smtp_user, settings.smtp_password.get_secret_value())
            server.send_message(mail)


def _words(delivery: WebhookDelivery) -> tuple[str, str]:
    """Title and text for people."""
    alert = msgspec.json.decode(delivery.body)["alert"]
    title = cleaned(f"Scrapeyard {_TITLES[delivery.event]}: {alert['rule']} ({alert['subject']})")
    lines = [alert["words"], f"since {alert['started_at']}"]
    if alert["resolved_at"]:
        lines.append(f"resolved at {alert['resolved_at']}")
    if alert["tells"] > 1:
        lines.append(f"told {alert['tells']} times")
    return title, "\n".join([*lines, f"id {alert['id']}"]) + "\n"


def _without(url: str, attempt: Attempt) -> Attempt:
    """The attempt, without the address in its error."""
    error = attempt.error
    for secret in (url, url.partition("://")[2], "/" + url.partition("://")[2].partition("/")[2]):
        if len(secret) > 1:
            error = error.replace(secret, "…")
    return replace(attempt, error=error)
