"""The files of `deploy/`: their real validators accept them, and they name only settings and paths that exist.

`make deploy-check` brings the validators; elsewhere those that are missing are left out.
"""

import importlib.util
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from scrapeyard import settings
from scrapeyard.settings.loading import _NOT_KEYS
from tests.leaks import PATIENCE
from tests.services.prometheus import needs_prometheus, program

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "scrapeyard"
COMPOSE = DEPLOY / "compose.yaml"
ONCE = {"setup", "keys"}
"""Services that end when they are done."""
_TEXT = (".yaml", ".yml", ".tpl", ".py", ".sh", ".service", ".txt", "Dockerfile", "Caddyfile")


def _checked(*command: str, **environment: str) -> str:
    """Run a validator of `make deploy-check`, which brings the versions that our files are for. Another one that the
    machine happens to have, such as a Caddy of years ago, says nothing about them."""
    if not os.environ.get("DEPLOY_CHECK"):
        pytest.skip("`make deploy-check` runs the validators")
    assert shutil.which(command[0]), f"{command[0]} is missing"
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _files() -> list[Path]:
    return [path for path in DEPLOY.rglob("*") if path.is_file() and path.name.endswith(_TEXT)]


def test_every_setting_that_is_named_exists() -> None:
    known = {environment for _, environment, _, _ in settings.describe()} | _NOT_KEYS
    own = {"SCRAPEYARD_TAG", "SCRAPEYARD_TARGET"}
    named = {
        name: path.name for path in _files() for name in re.findall(r"\bSCRAPEYARD_[A-Z0-9_]+\b", path.read_text())
    }
    assert len(named) > 15
    assert not {name: path for name, path in named.items() if name not in known | own}


def test_the_chart_has_the_profile() -> None:
    assert (CHART / "seccomp.json").read_bytes() == (DEPLOY / "seccomp" / "scrapeyard.json").read_bytes()


def test_the_profile_allows_what_walls_are_made_of() -> None:
    """In the form of the OCI: without conditions on capabilities, which only some runtimes read."""
    profile = json.loads((DEPLOY / "seccomp" / "scrapeyard.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert all(set(rule) <= {"comment", "names", "action", "args"} for rule in profile["syscalls"])
    allowed = {name for rule in profile["syscalls"] for name in rule["names"] if not rule.get("args")}
    assert {"unshare", "mount", "umount2", "pivot_root", "seccomp", "landlock_restrict_self"} <= allowed
    assert not {"bpf", "kexec_load", "init_module", "ptrace_attach", "setns", "reboot", "keyctl"} & allowed


class TestCompose:
    """`compose.yaml` and what it mounts."""

    @staticmethod
    def _document() -> dict[str, Any]:
        text = re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", COMPOSE.read_text())
        document: dict[str, Any] = yaml.safe_load(text)
        return document

    def _services(self) -> dict[str, dict[str, Any]]:
        services: dict[str, dict[str, Any]] = self._document()["services"]
        return services

    def test_services_are_hardened_and_watched(self) -> None:
        for name, service in self._services().items():
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name
            assert "no-new-privileges:true" in service["security_opt"], name
            assert name in ONCE or service["healthcheck"]["test"], name

    def test_mounted_files_are_there(self) -> None:
        mounts = [text for service in self._services().values() for text in service.get("volumes", [])]
        files = [text.split(":")[0] for text in mounts if text.startswith(".")]
        assert files
        assert not [name for name in files if not (DEPLOY / name).exists()]

    def test_the_specification_is_kept(self, tmp_path: Path) -> None:
        """Merge keys and variables are resolved first, as compose does."""
        whole = tmp_path / "compose.json"
        whole.write_text(json.dumps(self._document()))
        code = "import sys, compose_spec as c; c.PyCompose.from_json(open(sys.argv[1]).read()).validate()"
        _checked("deploy-check-python", "-c", code, str(whole))

    def test_caddy_takes_its_file(self, tmp_path: Path) -> None:
        authority = tmp_path / "ca.pem"
        authority.write_bytes(_setup().contents()["caddy"]["ca.pem"])
        _checked(
            *("caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "compose" / "Caddyfile")),
            SITE="localhost",
            CADDY_TLS="internal",
            GATEWAY_CA=str(authority),
            GATEWAYS="https://gateway-1:8000 https://gateway-2:8000",
            HOME=str(tmp_path),
        )

    @needs_prometheus
    def test_prometheus_takes_its_file(self, tmp_path: Path) -> None:
        config = (DEPLOY / "compose" / "prometheus.yml").read_text().replace("/run/prometheus", str(tmp_path))
        for name in ("ca.pem", "key"):
            (tmp_path / name).write_bytes(_setup().contents()["prometheus"]["ca.pem"])
        shutil.copy(DEPLOY / "prometheus" / "alerts.yml", tmp_path)
        (tmp_path / "prometheus.yml").write_text(config)
        _checked(program("promtool") or "promtool", "check", "config", str(tmp_path / "prometheus.yml"))


def _setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compose_setup", DEPLOY / "compose" / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_setup_makes_secrets_once(tmp_path: Path) -> None:
    """Settings that load, files that only their owner reads, and certificates that the authority vouches for."""
    command = [sys.executable, str(DEPLOY / "compose" / "setup.py"), str(tmp_path)]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert (first, second) == ("made\n", "already there\n")
    yard = tmp_path / "yard"
    assert (yard / "scrapeyard.toml").stat().st_mode & 0o077 == 0
    loaded = settings.load(environ={"SCRAPEYARD_CONFIG": str(yard / "scrapeyard.toml")}, folder=tmp_path)
    assert loaded.database_url.get_secret_value().endswith("?sslmode=verify-full&sslrootcert=/run/scrapeyard/ca.pem")
    assert loaded.redis_url.get_secret_value().startswith("rediss://")
    for service in ("yard", "postgres", "valkey", "seaweedfs", "caddy", "grafana"):
        place = tmp_path / service
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(place / "cert.pem", place / "key.pem")
        assert (place / "ca.pem").read_bytes() == (yard / "ca.pem").read_bytes()


class TestChart:
    """The Helm chart."""

    @pytest.mark.parametrize(
        "values",
        [
            [],
            ["worker.autoscaling.by=hpa", "hostUsers=false", "caSecret=ca", "gateway.tlsSecret=tls"],
            ["worker.autoscaling.by=none", "gateway.autoscaling.enabled=false", "seccomp.install=false"],
            [
                *("gateway.ingress.enabled=true", "gateway.hosts={scrape.example.com}", "gateway.ingress.tlsSecret=t"),
                *("settings.SCRAPEYARD_BLOBS__URL=s3://bucket/x", "podMonitor.enabled=true", "worker.lanes={a,b}"),
            ],
        ],
        ids=["default", "hpa and TLS", "fixed", "ingress"],
    )
    def test_rendered_documents_are_valid(self, values: list[str], tmp_path: Path) -> None:
        given = [word for value in ["existingSecret=yard", *values] for word in ("--set", value)]
        text = _checked("helm", "template", "yard", str(CHART), *given, HOME=str(tmp_path))
        documents = [each for each in yaml.safe_load_all(text) if each]
        assert {"Deployment", "PodDisruptionBudget", "NetworkPolicy", "Service"} <= {each["kind"] for each in documents}
        rendered = tmp_path / "rendered.yaml"
        rendered.write_text(text)
        told = _checked("kubernetes-validate", "-k", "1.33", str(rendered))
        assert "ERROR" not in told, told
        self._check_pods(documents)

    @staticmethod
    def _check_pods(documents: list[dict[str, Any]]) -> None:
        known = {environment for _, environment, _, _ in settings.describe()}
        for document in (each for each in documents if each["kind"] == "Deployment"):
            pod = document["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"]
            (container,) = pod["containers"]
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            is_worker = container["name"] == "worker"
            assert context["seccompProfile"]["type"] == ("Localhost" if is_worker else "RuntimeDefault")
            given = {each["name"]: each["value"] for each in container["env"]}
            assert set(given) <= known
            settings.load(environ=given)

    def test_it_says_what_is_missing(self, tmp_path: Path) -> None:
        if not shutil.which("helm"):
            pytest.skip("helm is not installed: `make deploy-check` brings it")
        done = subprocess.run(
            ["helm", "template", "yard", str(CHART)],
            capture_output=True,
            text=True,
            env=os.environ | {"HOME": str(tmp_path)},
            check=False,
        )
        assert done.returncode != 0
        assert "existingSecret" in done.stderr


@pytest.mark.parametrize("name", ["cluster.yaml", "lambda.yaml", "table.yaml"])
def test_cloudformation(name: str) -> None:
    _checked("cfn-lint", "--", str(DEPLOY / "aws" / name))


def test_dockerfile() -> None:
    _checked("hadolint", str(DEPLOY / "Dockerfile"))


@pytest.mark.parametrize("role", ["gateway", "worker", "dispatcher"])
def test_units(role: str, tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / f"scrapeyard-{role}.service").read_text()
    unit = tmp_path / f"scrapeyard-{role}.service"
    unit.write_text(text.replace("/opt/scrapeyard/bin/scrapeyard", shutil.which("true") or "/bin/true"))
    _checked("systemd-analyze", "verify", "--man=no", str(unit))
    taken_away = {"RestrictNamespaces", "PrivateUsers", "SystemCallFilter", "ProtectProc"}
    named = {line.partition("=")[0] for line in text.splitlines() if not line.startswith("#")}
    assert bool(named & taken_away) == (role != "worker")
