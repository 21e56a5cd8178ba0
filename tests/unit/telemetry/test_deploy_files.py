"""The table of metrics, the dashboards and the alert rules: every metric that they name exists, and every alert fires.

`python -m tests.unit.telemetry.test_deploy_files` writes the table of docs/metrics.md.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scrapeyard.telemetry.metrics import Metrics
from tests.services.prometheus import needs_prometheus, program

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "metrics.md"
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "alerts.yml"
RULE_TESTS = DEPLOY / "prometheus" / "alerts.test.yml"
_TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.DOTALL)
_NAME = re.compile(r"\b(?:scrapeyard|flaresolverr|process)_[a-z_]+\b")
_OF_PROCESS = {
    "process_resident_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_cpu_seconds_total",
    "process_start_time_seconds",
}


def table() -> str:
    lines = ["| metric | type | meaning |", "|---|---|---|"]
    for row in Metrics().rows():
        labels = f"{{{','.join(row.labels)}}}" if row.labels else ""
        lines.append(f"| `{row.name}{labels}` | {row.kind} | {row.words} |")
    return "\n".join(lines) + "\n"


def known() -> set[str]:
    names = set(_OF_PROCESS)
    for row in Metrics().rows():
        names |= {row.name} if row.kind != "histogram" else {f"{row.name}_{end}" for end in ("bucket", "sum", "count")}
    return names


def rules() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}


def test_the_table_in_the_docs_is_whole() -> None:
    found = _TABLE.search(PAGE.read_text("utf-8"))
    assert found is not None
    assert found[0] == table(), "run python -m tests.unit.telemetry.test_deploy_files"


@pytest.mark.parametrize(
    "file", ["prometheus/alerts.yml", "prometheus/alerts.test.yml", "grafana/scrapeyard.json",
             "cloudwatch/dashboard.json", "cloudwatch/agent.json"],
)  # fmt: skip
def test_every_metric_named_in_deploy_exists(file: str) -> None:
    named = set(_NAME.findall((DEPLOY / file).read_text()))
    assert named
    assert named <= known()


def test_dashboards_show_every_metric() -> None:
    shown = set(_NAME.findall((DEPLOY / "grafana" / "scrapeyard.json").read_text()))
    gauges_of_one_process = {"scrapeyard_worker_slots", "scrapeyard_worker_busy_slots", "scrapeyard_dispatcher_leads"}
    rarely = {"scrapeyard_gateway_runs_ended_total", "scrapeyard_solver_calls_total"}
    for row in Metrics().rows():
        name = f"{row.name}_bucket" if row.kind == "histogram" else row.name
        if not name.startswith("scrapeyard_repository_") and name not in gauges_of_one_process | rarely:
            assert name in shown, f"the Grafana dashboard shows nothing of {name}"


def test_what_the_cloudwatch_dashboard_shows_is_sent_by_the_agent() -> None:
    shown = set(_NAME.findall((DEPLOY / "cloudwatch" / "dashboard.json").read_text()))
    sent = set(_NAME.findall((DEPLOY / "cloudwatch" / "agent.json").read_text()))
    assert shown == sent
    for widget in json.loads((DEPLOY / "cloudwatch" / "dashboard.json").read_text())["widgets"]:
        assert widget["properties"]["metrics"]


def test_every_alert_is_explained_and_tested_both_ways() -> None:
    guide = (ROOT / "docs" / "alerts.md").read_text("utf-8")
    tests: dict[str, set[bool]] = {}
    for test in yaml.safe_load(RULE_TESTS.read_text())["tests"]:
        for case in test["alert_rule_test"]:
            tests.setdefault(case["alertname"], set()).add(bool(case["exp_alerts"]))
    for alert, rule in rules().items():
        assert f"### {alert}\n" in guide, f"docs/alerts.md does not explain {alert}"
        assert tests.get(alert) == {True, False}, f"{alert} has no test that it fires, or none that it does not"
        assert rule["labels"]["severity"] in ("warning", "critical")


@needs_prometheus
@pytest.mark.parametrize(
    "command", ["check rules alerts.yml", "test rules alerts.test.yml", "check config prometheus.yml"]
)
def test_prometheus_accepts_rules_and_configuration(command: str) -> None:
    done = subprocess.run(
        [program("promtool") or "promtool", *command.split()],
        cwd=RULES.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    PAGE.write_text(_TABLE.sub(lambda _: table(), PAGE.read_text("utf-8")), "utf-8")
