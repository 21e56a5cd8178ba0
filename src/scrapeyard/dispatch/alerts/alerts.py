"""Alerts: fired once, told again after a while, and told when they are resolved."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from scrapeyard.dispatch.alerts.messages import FIRING, RESOLVED, messages
from scrapeyard.dispatch.alerts.rules import AlertRules, Breach, Breaches
from scrapeyard.model import new_id
from scrapeyard.model.audit import cleaned
from scrapeyard.settings import AlertRule, Settings
from scrapeyard.store.ports.webhooks import Alert, AlertStore
from scrapeyard.telemetry.events import get_log

log = get_log("alerts")
MAX_SUBJECTS: Final = 20
"""Alerts of one rule that last at once; what is wrong beyond is told when one of them is resolved."""
_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR


class Alerts:
    """A MaintenanceTask, so that only the leader evaluates. What it told stands in the store, for the next leader."""

    name = "alerts"
    waits_after_outage = True

    def __init__(self, settings: Settings, alerts: AlertStore, rules: AlertRules, clock: Callable[[], float]) -> None:
        self._settings = settings.alerts
        self._in_force = settings.alerts.rules_in_force
        self._give_up_hours = settings.webhooks.give_up_hours
        self._alerts = alerts
        self._rules = rules
        self._clock = clock
        self._next = clock() + self._settings.every_seconds
        """Not at once: workers that start together with this process must have time for their first heartbeat."""

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + self._settings.every_seconds
        firing = await self._alerts.firing()
        rules = {rule.label for rule in self._in_force}
        for alert in firing:
            if alert.rule not in rules:
                await self._resolve(alert, now)
        for rule in self._in_force:
            mine = [alert for alert in firing if alert.rule == rule.label]
            found = await self._rules.evaluate(rule, mine)
            if found is not None:
                await self._compare(rule, mine, found, now)
        await self._alerts.forget_before(now - self._settings.keep_days * _DAY)

    async def _compare(self, rule: AlertRule, firing: Sequence[Alert], found: Breaches, now: float) -> None:
        known = {alert.subject: alert for alert in firing}
        lasting = 0
        for subject, alert in known.items():
            if subject in found:
                lasting += 1
                await self._repeat(alert, found[subject], now)
            else:
                await self._resolve(alert, now)
        new = sorted(subject for subject in found if subject not in known)
        for subject in new[: max(0, MAX_SUBJECTS - lasting)]:
            await self._fire(rule, subject, found[subject], now)

    async def _fire(self, rule: AlertRule, subject: str, finding: Breach, now: float) -> None:
        alert = Alert(
            id=new_id("alert"),
            rule=rule.label,
            subject=subject,
            words=cleaned(finding.words),
            value=finding.value,
            threshold=rule.limit,
            started_at=now,
            told_at=now,
        )
        if await self._alerts.open(alert, messages(self._settings, alert, FIRING, now, self._give_up_hours)):
            log.warning("alerts.firing", alert=alert.id, rule=alert.rule, subject=subject, words=alert.words)

    async def _repeat(self, alert: Alert, finding: Breach, now: float) -> None:
        hours = self._settings.repeat_hours
        if not hours or now < alert.told_at + hours * _HOUR:
            return
        again = replace(alert, words=cleaned(finding.words), value=finding.value, told_at=now, tells=alert.tells + 1)
        if await self._alerts.change(alert, again, messages(self._settings, again, FIRING, now, self._give_up_hours)):
            log.warning("alerts.firing", alert=alert.id, rule=alert.rule, subject=alert.subject, words=again.words)

    async def _resolve(self, alert: Alert, now: float) -> None:
        ended = replace(alert, state="resolved", resolved_at=now)
        if await self._alerts.change(alert, ended, messages(self._settings, ended, RESOLVED, now, self._give_up_hours)):
            log.info("alerts.resolved", alert=alert.id, rule=alert.rule, subject=alert.subject)
