"""A real OpenSearch node with the security plugin: TLS on both ports, users and roles.

The plugin comes from Maven's cache, as the node does. Keys are made for the day, so that nothing
secret is in the repository; users and roles are made over REST, by the certificate of an
administrator, as docs/fleet.md says.
"""

from __future__ import annotations

import hmac
import json
import secrets
import shutil
import ssl
import subprocess
import time
import zipfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import opensearch_cluster
from opensearch_cluster import HOST, Cluster, Node, archive

VERSION = f"{opensearch_cluster.VERSION}.0"
ARTIFACT = f"org.opensearch.plugin:opensearch-security:{VERSION}:zip"
NAME = "opensearch-security"
API = "/_plugins/_security/api"
SETTINGS = """
plugins.security.ssl.http.enabled: true
plugins.security.ssl.transport.enforce_hostname_verification: false
plugins.security.allow_default_init_securityindex: true
plugins.security.authcz.admin_dn: ["CN=admin"]
plugins.security.nodes_dn: ["CN=node"]
""" + "".join(
    f"plugins.security.ssl.{port}.{kind}_filepath: keys/{file}\n"
    for port in ("transport", "http")
    for kind, file in (
        ("pemcert", "node.pem"),
        ("pemkey", "node.key"),
        ("pemtrustedcas", "ca.pem"),
    )
)


def _domain(kind: str, order: int, backend: str, **config: str) -> dict[str, Any]:
    return {
        "http_enabled": True,
        "order": order,
        "http_authenticator": {"type": kind, "challenge": kind == "basic", "config": config},
        "authentication_backend": {"type": backend},
    }


def plugin() -> Path:
    """Return where Maven keeps the plugin."""
    repository = archive().parents[6]
    return repository / f"org/opensearch/plugin/{NAME}/{VERSION}/{NAME}-{VERSION}.zip"


def why_not() -> str:
    """Return in one sentence why no such node can be started here; empty if one can."""
    if reason := opensearch_cluster.why_not():
        return reason
    if shutil.which("openssl") is None:
        return "openssl makes certificates, and it is not here"
    if not plugin().is_file():
        return f"Maven's cache has no security plugin: mvn dependency:get -Dartifact={ARTIFACT}"
    return ""


class SecureCluster(Cluster):
    """A cluster of the distribution with the plugin, with keys signed by its own CA."""

    def __init__(self, settings: Sequence[str] = (), heap: str = opensearch_cluster.HEAP) -> None:
        super().__init__(settings, heap)
        config = self.distribution / "config"
        with zipfile.ZipFile(plugin()) as packed:
            packed.extractall(self.distribution / "plugins" / NAME)
        (self.distribution / "plugins" / NAME / "config").rename(config / NAME)
        self.secret = secrets.token_bytes(64)
        token = {
            "signing_key": b64encode(self.secret).decode(),
            "roles_key": "roles",
            "subject_key": "sub",
        }
        ways = {
            "password": _domain("basic", 1, "intern"),
            "token": _domain("jwt", 0, "noop", **token),
        }
        for name, kind, fields in (
            ("internal_users", "internalusers", {}),
            ("config", "config", {"config": {"dynamic": {"authc": ways}}}),
        ):
            text = json.dumps({"_meta": {"type": kind, "config_version": 2}, **fields})
            (config / NAME / f"{name}.yml").write_text(text)
        with (config / "opensearch.yml").open("a") as file:
            file.write(SETTINGS)
        self.keys = config / "keys"
        self.keys.mkdir()
        self._make("ca", "-addext", "basicConstraints=critical,CA:TRUE")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE")
        self._make("node", *signed, "-addext", f"subjectAltName=IP:{HOST}")
        self._make("admin", *signed)

    def _make(self, name: str, *options: str) -> None:
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={name}",
                "-keyout",
                f"{name}.key",
                "-out",
                f"{name}.pem",
                *options,
            ],
            cwd=self.keys,
            check=True,
            capture_output=True,
        )

    def token(self, user: str, roles: Sequence[str], seconds: int) -> str:
        """Return a JSON web token for a user, valid for a number of seconds from now."""
        says = {"sub": user, "roles": list(roles), "exp": int(time.time()) + seconds}
        parts = [json.dumps(piece).encode() for piece in ({"alg": "HS512", "typ": "JWT"}, says)]
        text = b".".join(urlsafe_b64encode(part).rstrip(b"=") for part in parts)
        mark = hmac.digest(self.secret, text, "sha512")
        return b".".join((text, urlsafe_b64encode(mark).rstrip(b"="))).decode()

    def start_single(self, settings: Sequence[str] = ()) -> SecureNode:
        """Start a cluster of one node, and wait until its users can be made."""
        node = SecureNode(self, "n1")
        self.nodes.append(node)
        node.start(["discovery.type=single-node", *settings])
        node.wait()
        return node


class SecureNode(Node):
    """One node that answers over TLS; its requests are made as its administrator."""

    cluster: SecureCluster

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def ca(self) -> str:
        """The certificate that clients are to trust."""
        return str(self.cluster.keys / "ca.pem")

    def answers(self, method: str, path: str) -> bool:
        """Tell whether it is up, and knows its roles."""
        try:
            return self.ask(method, path)[0] == 200 and self.ask("GET", f"{API}/roles")[0] == 200
        except (OSError, HTTPException):
            return False

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request with the administrator's certificate; return the status and the answer."""
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.cluster.keys / "admin.pem", self.cluster.keys / "admin.key")
        connection = HTTPSConnection(HOST, self.port, timeout=60, context=context)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text
        finally:
            connection.close()
