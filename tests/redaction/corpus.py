"""A labelled corpus, made from public token formats: notes with one secret, and harmless notes.

The same seed gives the same notes. Vendors and sentences of the split `held` never stand in the
split `tuned`, which is the only one that detectors may be tuned on. No value stands in this file:
`{a36}` draws 36 letters and digits, `{h}` hex, `{u}` upper, `{l}` lower, `{d}` also - and _,
`{b}` base64, `{n}` digits, `{g}` a UUID.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from typing import NamedTuple

UPPER, LOWER, DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits
ALPHABETS = {
    "a": UPPER + LOWER + DIGITS,
    "h": DIGITS + "abcdef",
    "u": UPPER + "234567",
    "l": LOWER + DIGITS,
    "d": UPPER + LOWER + DIGITS + "-_",
    "b": UPPER + LOWER + DIGITS + "+/",
    "n": DIGITS,
}


class Note(NamedTuple):
    """A text with the strings in it that must not stay; none for a harmless note."""

    name: str
    text: str
    secrets: tuple[str, ...] = ()
    personal: bool = False


TOKENS = {
    "tuned": (
        "ghp_{a36}",
        "github_pat_{a22}_{a59}",
        "glpat-{d20}",
        "AKIA{u16}",
        "AIza{d35}",
        "xoxb-{n12}-{n12}-{a24}",
        "sk_live_{a24}",
        "sk-proj-{d74}",
        "sk-ant-api03-{d93}AA",
        "npm_{a36}",
        "pypi-AgEIcHlwaS5vcmc{d90}",
        "SG.{d22}.{d43}",
        "dop_v1_{h64}",
        "shpat_{h32}",
        "dapi{h32}",
        "hvs.{d95}",
        "lin_api_{a40}",
        "ntn_{a46}",
        "{n10}:AA{d33}",
        "SK{h32}",
        "key-{h32}",
        "glsa_{a32}_{h8}",
        "NRAK-{u27}",
        "dp.pt.{a43}",
        "ATATT3{d180}",
        "dckr_pat_{d27}",
        "pul-{h40}",
        "PMAK-{h24}-{h34}",
        "rubygems_{h48}",
        "sq0atp-{d22}",
        "GOCSPX-{d28}",
        "AGE-SECRET-KEY-1{u58}",
        "tskey-auth-{a12}CNTRL-{a32}",
        "sbp_{h40}",
        "{a14}.atlasv1.{d67}",
    ),
    "held": (
        "gho_{a36}",
        "ghs_{a36}",
        "glrt-{d20}",
        "ASIA{u16}",
        "ya29.{d120}",
        "xoxp-{n12}-{n12}-{n12}-{h32}",
        "xapp-1-A{u10}-{n13}-{h64}",
        "rk_live_{a24}",
        "whsec_{a32}",
        "hf_{a34}",
        "sk-svcacct-{d74}",
        "sk-{a48}",
        "gsk_{a52}",
        "r8_{a37}",
        "pplx-{a48}",
        "shpss_{h32}",
        "figd_{d40}",
        "sntryu_{h64}",
        "secret_{a43}",
        "xkeysib-{h64}-{a16}",
        "M{a23}.{d6}.{d38}",
        "{h32}-us{n2}",
        "{a3}8Q~{a34}",
        "pat{a14}.{h64}",
        "dt0c01.{u24}.{u64}",
        "glc_{b120}",
        "phx_{a43}",
        "CFPAT-{d43}",
        "PuLsE_{a36}",
        "acme_live_{a32}",
        "qx-{a40}",
        "kmp.{a44}",
        "oy2{l43}",
        "AKCp{a69}",
        "EZAK{a54}",
        "napi_{l64}",
        "vercel_blob_rw_{a16}_{a30}",
    ),
    "fresh": (
        "ghu_{a36}",
        "ghr_{a36}",
        "gldt-{d20}",
        "glsoat-{d20}",
        "xoxe-1-{a60}",
        "sk_test_{a24}",
        "rk_test_{a24}",
        "sk-ant-admin01-{d93}AA",
        "sk-or-v1-{h64}",
        "shpca_{h32}",
        "shppa_{h32}",
        "doo_v1_{h64}",
        "dp.st.prd.{a43}",
        "lin_oauth_{h64}",
        "sq0csp-{d43}",
        "hvb.{d140}",
        "squ_{h40}",
        "tfp_{d59}",
        "RGAPI-{g}",
        "waka_{g}",
        "pscale_tkn_{d43}",
        "sntrys_{a80}_{a43}",
        "AQVN{d36}",
        "LTAI{a20}",
        "AKID{a32}",
        "xai-{a80}",
        "nvapi-{d64}",
        "lsv2_pt_{h32}_{h10}",
        "dckr_oat_{d27}",
        "phs_{a43}",
        "{h32}-{h8}-{h8}",
        "1//0{d80}",
        "foo1-{a44}",
        "zz.live.{a36}",
        "brt_{d48}",
        "API-{u27}",
    ),
}
"""Formats as the vendors publish them; four of the held ones belong to nobody."""

TOKEN_SENTENCES = {
    "tuned": (
        "The deploy used {s}.",
        "export SERVICE_TOKEN={s}",
        "token: {s}",
        "(see {s})",
        "'{s}'",
        "`{s}`",
        '{"auth": "{s}"}',
        "| ci | {s} | nightly |",
        "I pasted {s}, sorry!",
        "https://api.acme.io/v1?key={s}&x=1",
        "run: deploy --token {s} --wait",
        "key={s};",
        "<token>{s}</token>",
        "- {s}",
        "**{s}**",
    ),
    "held": (
        "it worked with {s}: all green",
        'client = Client("{s}")',
        "curl -H 'X-Auth: {s}' https://api.acme.io",
        "Worker failed because {s} had been revoked.",
        "[{s}]",
        "credential => {s}",
        "> {s}",
        "old={s}, new=none",
        "{s}\n",
        "set it to “{s}” first",
        'env:\n  SERVICE_AUTH: "{s}"',
        "echo {s} | docker login --password-stdin",
    ),
    "fresh": (
        "{s}, found in the log,",
        "Rotate {s} now!",
        "auth={s}&x=1",
        "apiKey: {s} # staging",
        "header: 'Token {s}'",
        "[ci]\ntoken={s}",
        'x = "{s}" # noqa',
        "see `{s}`)",
        "1. {s}",
        '--header "Api-Key: {s}"',
        '("{s}",)',
        "we saw {s}/v1 in the trace",
    ),
}

CONTEXT_VALUES = {
    "tuned": ("{h32}", "{a32}", "{h64}", "{a40}", "{g}", "{l36}", "{d43}", "{a20}", "{b40}"),
    "held": ("{h40}", "{a24}", "{l32}", "{a64}", "{d32}", "{u32}", "{b44}=", "{a18}", "{g}"),
    "fresh": (
        "{h32}",
        "{a22}",
        "{l40}",
        "{g}",
        "{d30}",
        "{a48}",
        "{b43}=",
    ),
}
CONTEXT_SENTENCES = {
    "tuned": (
        "api_key = '{s}'",
        "API key: {s}",
        "DATADOG_API_KEY={s}",
        '"clientSecret": "{s}",',
        "client_secret: {s}",
        "The API key is {s}.",
        "access token -> {s}",
        "auth_token={s}",
        "| API key | {s} |",
        "secret: {s}",
        "Our staging api key is `{s}`.",
        "X-Api-Key: {s}",
        "--api-key {s}",
        "export APP_SECRET={s}",
        "signing secret = {s}",
        'const accessToken = "{s}";',
        "The token for the mirror is {s}",
        "aws_secret_access_key = {s}",
        "heroku_api_key: {s}",
        '  api-key: "{s}"',
        "apikey={s}",
    ),
    "held": (
        "fastly_api_token: '{s}'",
        "ENCRYPTION_KEY={s}",
        'self.api_key = "{s}"',
        "the secret key is now `{s}`",
        "?api_key={s}&page=2",
        "setx ALGOLIA_ADMIN_KEY {s}",
        "  - name: CLIENT_SECRET\n    value: {s}",
        "private_token=>'{s}'",
        "API-Schlüssel: {s}",
        "La clé API est {s}.",
        "service token (prod): {s}",
        "`{s}` is the master key",
        "config.set('auth_token', '{s}')",
        "webhookSecret: '{s}',",
        "<apiKey>{s}</apiKey>",
        "headers={'X-Auth-Token': '{s}'}",
        "# access_key: {s}",
        "credentials.secret = {s}",
        'API_KEY: str = "{s}"',
        "The bot token we use in staging is {s}",
    ),
    "fresh": (
        "DEEPGRAM_API_KEY: {s}",
        "deploy key = {s}",
        "the api secret is {s}",
        "APP_CLIENT_SECRET='{s}'",
        "let apiToken = '{s}'",
        'access_token: "{s}"',
        "| service | api token |\n|---|---|\n| ci | {s} |",
        "| token | `{s}` |",
        "os.environ['API_SECRET'] = '{s}'",
        "--secret={s}",
        "API token for the mirror: {s}",
        "ENV SECRET_KEY {s}",
        "X-Auth-Token: {s}",
        "use {s} as API key",
        "shared secret -> {s}",
        '{"apiKey":"{s}"}',
        "auth token was {s}, rotate it",
        '<add key="ApiKey" value="{s}"/>',
        "sessionSecret: {s}",
        "token={s}",
    ),
}
PASSWORD_SENTENCES = {
    "tuned": (
        "the admin password is `{s}`",
        "password: {s}",
        "DB_PASSWORD={s}",
        'passwd = "{s}"',
        "The root password is {s}.",
        "| admin | password | {s} |",
        "mysql -u root -p{s} app",
        "Password={s};Encrypt=yes",
        "pwd: '{s}'",
        "login with admin / {s}",
        "sshpass -p '{s}' ssh deploy@host1",
        "curl -u deploy:{s} https://ci.acme.io",
        "passphrase = {s}",
        "das Passwort ist {s}",
        "Use {s} as the password.",
        "PGPASSWORD={s} psql -h db1",
        "| user | password |\n| --- | --- |\n| ops | {s} |",
        "the wifi password was set to {s}",
    ),
    "held": (
        "password for the staging box: {s}",
        "we changed the db password to {s} yesterday",
        '"password": "{s}"',
        "<password>{s}</password>",
        "creds: admin / {s}",
        "le mot de passe est {s}",
        "la contraseña es `{s}`",
        "redis-cli -a {s} ping",
        "requirepass {s}",
        "ansible_password: {s}",
        "--password={s}",
        "--password '{s}'",
        "Log in as root with password {s}",
        "the pw is {s}",
        "spring.datasource.password={s}",
        "machine ci.acme.io login bot password {s}",
        "$password = '{s}';",
        "(password: {s})",
        'The password of the build agent is still "{s}".',
        "user=app password={s} host=db1",
    ),
    "fresh": (
        "my password's {s}",
        "root's password is now {s}",
        "Password -> {s}",
        "user: ops\npass: {s}",
        "sudo password: `{s}`",
        "export MYSQL_PWD={s}",
        "senha: {s}",
        "пароль: {s}",
        "the password ({s}) still works",
        "{s} is the db password",
        "Password (staging) = {s}",
        "SMTP_PASS={s}",
        "'password' => '{s}',",
        "password to the vault is {s}",
        "credentials: deploy:{s}",
        "wachtwoord is {s}",
        'psql "host=db1 user=app password={s}"',
        "smbclient -U ops%{s} //nas/share",
        "docker login -u ci -p {s} registry.acme.io",
        "keystorePassword={s}",
    ),
}
CONNECTIONS = {
    "tuned": (
        "postgres://app:{s}@db.acme.io:5432/app",
        "mysql://root:{s}@10.0.0.5/shop",
        "redis://:{s}@cache1:6379/0",
        "mongodb+srv://svc:{s}@cluster0.mongodb.net/x",
        "https://ci:{s}@git.acme.io/a/b.git",
        "Server=db1;Database=x;User Id=sa;Password={s};",
        "amqp://guest2:{s}@mq1:5672/vh",
    ),
    "held": (
        "postgresql+asyncpg://svc:{s}@db-2.internal/app?sslmode=require",
        "ftp://backup:{s}@10.1.2.3/",
        "rediss://default:{s}@eu1-x.upstash.io:6379",
        "jdbc:mysql://db1/x?user=app&password={s}",
        "smtp://mailer%40acme.io:{s}@smtp.acme.io:587",
        "ldap://cn=admin:{s}@ldap1:389",
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={k};EndpointSuffix=core.windows.net",
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={k}",
    ),
    "fresh": (
        "mariadb://app:{s}@db3/shop",
        "clickhouse://default:{s}@ch1:9000/logs",
        "sqlserver://sa:{s}@db1:1433?database=x",
        "nats://svc:{s}@n1:4222",
        "Data Source=db2;Initial Catalog=x;User ID=app;Pwd={s}",
        "mongodb://root:{s}@m1:27017,m2:27017/admin",
        "AccountName=acme;AccountKey={k}",
        "svn+ssh://ops:{s}@svn.acme.io/repo",
    ),
}
HEADERS = {
    "tuned": (
        "Authorization: Bearer {a40}",
        "-H 'Authorization: Basic {b32}=='",
        "Authorization: token {h40}",
    ),
    "held": (
        '"Authorization": "Bearer {d64}"',
        "authorization: Bearer {a48}",
        "PRIVATE-TOKEN: {d20}",
        "Proxy-Authorization: Basic {b40}=",
        "Cookie: theme=dark; sessionid={l32}",
        "Authorization: ApiKey {a44}",
    ),
    "fresh": (
        "Authorization: Bearer {d80}",
        'curl -H "Authorization: Bearer {a32}"',
        "X-API-KEY: {h32}",
        "Authorization: Basic {b24}==",
        "'Authorization': 'Token {h40}'",
        "Set-Cookie: session={a40}; Path=/",
    ),
}
BARE = {
    "tuned": ("{a40}", "{b44}", "{d43}", "{a28}"),
    "held": ("{a32}", "{d36}", "{b64}", "{a52}", "{a24}"),
    "fresh": ("{a36}", "{d48}", "{b52}", "{a26}"),
}
BARE_SENTENCES = {
    "tuned": ("It only works with {s} in the box.", "{s}", "Paste {s} there.", "    {s}"),
    "held": (
        "Bob sent {s} over chat.",
        "then type {s} and press enter",
        "> {s}",
        "- left over: {s}",
    ),
    "fresh": ("| {s} |", "She typed {s}.", "'{s}'", "it printed {s}, once"),
}
KEY_FORMS = {
    "tuned": ("RSA ", "OPENSSH ", ""),
    "held": ("EC ", "ENCRYPTED ", "DSA "),
    "fresh": ("OPENSSH ", "RSA ", "EC "),
}
KEY_LAYOUTS = {
    "tuned": ("plain", "indented", "escaped"),
    "held": ("plain", "quoted", "truncated", "escaped"),
    "fresh": ("indented", "quoted", "truncated", "escaped"),
}
PERSONAL_SENTENCES = {
    "tuned": (
        "Ask {s} about it.",
        "Reported by {s}",
        "contact: {s}",
        "({s})",
        'owner = "{s}"',
        "| Bob | {s} |",
    ),
    "held": (
        "{s} reported the outage.",
        "Please reach out to {s}, thanks.",
        "customer: {s}; tier 2",
        "<{s}>",
        "the form had {s} in it",
        "- {s}",
    ),
    "fresh": (
        "Thanks to {s} for the report.",
        "{s} signed off",
        "user {s} could not pay",
        "e.g. {s};",
        '"{s}"',
        "field=[{s}]",
    ),
}

WORDS = str.split(
    "the index build queue worker retries when storage adapter returns stale snapshot after "
    "merge we chose append only files because branches never conflict migration script parser "
    "cache layer request handler timeout metrics dashboard schema lineage decision review "
    "token budget password reset secret rotation key session login form scheduler shard "
    "replica latency rollout config loader template engine release notes"
)

BENIGN = {
    "tuned": (
        "Fixed in {h40}.",
        "commit {h7} broke the token refresh",
        "sha256:{h64}",
        '"integrity": "sha512-{b86}=="',
        "golang.org/x/net v0.{n2}.0 h1:{b43}=",
        "![x](data:image/png;base64,iVBORw0KGgo{b90})",
        "request id {g}",
        "password = os.environ['DB_PASSWORD']",
        "password: ${DB_PASSWORD}",
        "API_KEY=<your-api-key>",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "The token expires after 3600 seconds.",
        "epoch 17{n8}",
        "ts=17{n11}",
        "AbstractSingletonProxyFactoryBeanRegistry",
        "src/main/java/com/acme/billing/InvoiceReconciliationService.java",
        "https://github.com/acme/billing/blob/{h40}/src/app.py#L10-L24",
        "max_tokens: 4096",
        "password_hash TEXT NOT NULL",
        "The password is read from `DB_PASSWORD`.",
        "primary key ({h8})",
        "cache key: {h64}",
        "uuid {g}",
        "git clone git@github.com:acme/app.git",
        "noreply@github.com sent it",
        "see jane@example.com",
        "unit getty@tty1.service failed",
        "postgres://user:password@localhost:5432/db",
        "v2.14.3-rc.1+build.{n8}",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} host key",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "test_should_return_404_when_user_is_not_found",
        "secret_name: billing-db-credentials",
        "token_url: https://id.acme.io/oauth",
        "passwords are hashed with argon2id",
        "api_key: REPLACE_ME",
        "def get_password(self): return self._password",
        "image: acme/app@sha256:{h64}",
        "Content-MD5: {b22}==",
        'ETag: "{h32}"',
        "10.0.{n2}.{n2}:5432",
    ),
    "held": (
        "Reverts {h40} because the api key lookup was slow.",
        "bisect says {h12}",
        "--hash=sha256:{h64}",
        "sha384-{b64}",
        "github.com/pkg/errors v0.9.1/go.mod h1:{b43}=",
        "url(data:font/woff2;base64,d09GMgABAAAAA{b120})",
        "idempotency token: {g}",
        "trace_id={h32}",
        'secret = os.getenv("APP_SECRET")',
        "auth: $AUTH_TOKEN",
        "PASSWORD=changeme",
        "secret: {{ .Values.secretName }}",
        "Tokens are refreshed every 15m.",
        "created_at: 17{n8}.{n3}",
        "TestCheckoutFlowShouldRejectExpiredSessionTokens",
        "/var/lib/docker/overlay2/{h64}/merged",
        "s3://acme-artifacts/builds/2026-02-22/app-{h12}.tar.gz",
        "nextPageToken is empty on the last page",
        "The secret is mounted at /run/secrets/db.",
        "the public key fingerprint is SHA256:{b43}",
        "object {h40}",
        "PRIMARY KEY (tenant_id, token_id)",
        "12+dependabot[bot]@users.noreply.github.com",
        "root@localhost",
        "mysql://USER:PASS@HOST/db",
        "Python 3.11.{n1}, OpenSSL 3.0.{n2}",
        "sk-...",
        "password must be at least 12 characters",
        "payments-worker-6c8f9d7b5c-k8x2p restarted",
        "token bucket: rate 100, burst 250",
        'key: "user:{n6}:profile"',
        "ResponseEntityExceptionHandlerConfiguration#handleMethodArgumentNotValid",
        "row id 01HV{u22}",
        "password is validated by `PasswordStrengthValidator2`",
        "secretKeyRef:\n  name: db\n  key: password",
        "node_modules/.pnpm/@babel+plugin-transform-modules-commonjs@7.{n2}.0/node_modules",
        "+++ b/src/auth/token_store.py",
        'if not token or token == "null": raise AuthError("token missing")',
        "pip 24.{n1} from /usr/lib/python3/dist-packages",
        "docker run -e POSTGRES_PASSWORD=$POSTGRES_PASSWORD app",
        "access token lifetime: 3600",
        "checksum {h64} ok",
        "JWT tokens use RS256, the secret uses HS256",
        "build 20260222.{n2}",
        "order 1{n9} shipped",
        "lat=48.{n6}, lon=11.{n6}",
    ),
    "fresh": (
        "Merge commit {h40} into main",
        "token count is 4096 of 8192",
        "api key id {h8}-{h4}",
        "the password policy requires 12 characters",
        "the secret name is db-credentials-prod",
        'curl -H "Authorization: Bearer $TOKEN" https://api.acme.io',
        "password: !vault |",
        "github.com/acme/x v1.2.{n2} h1:{b43}=",
        '"resolved": "https://packages.example.org/a/-/a-1.0.{n1}.tgz"',
        '"integrity": "sha512-{b86}=="',
        "{g} is the correlation id",
        "Digest: SHA-256={b43}=",
        "md5 {h32}",
        "ls .git/objects/{h2}/{h38}",
        "api_key = settings.API_KEY",
        "token = request.headers.get('X-Auth-Token')",
        "const token = await getAccessToken(clientId)",
        "KeyError: 'api_key'",
        "-e API_TOKEN=${API_TOKEN}",
        "com.acme.security.TokenAuthenticationFilterConfigurer",
        "https://docs.google.com/document/d/{d44}/edit",
        "https://acme.slack.com/archives/C0{u9}/p17{n14}",
        "17{n8}",
        "at 17{n11} ms",
        "retry after 17{n8} seconds",
        "user@example.com wrote",
        "root@10.0.0.{n2}: denied",
        "dbus.service and foo@1.service",
        "tel: ext. 42",
        "ISBN 978-3-16-148410-0",
        "order 2026-02-{n2}-{n4}",
        "10.{n2}.{n2}.{n1}",
        "the token `null` is special",
        "secrets: inherit",
        "passwordless ssh works",
        "s3cr3t is not a key word here",
        "PGPASSWORD=$DB_PASS psql",
        "xoxb-your-token-here",
        "sk_live_...",
        "AKIA................",
        "password=<redacted>",
        "TOKEN=%TOKEN%",
        "k8s: web-5d9c7b8f6d-{l5}",
        "arn:aws:iam::{n12}:role/deploy-bot",
        "ssh-rsa AAAAB3NzaC1yc2E{b120} ops@host1",
        "SHA256:{b43} (ED25519)",
        "pages 415-555",
        "ratio 0.{n16}",
        "pod ip 10.1.{n2}.{n2}",
    ),
}


def draw_value(form: str, draw: random.Random) -> str:
    """Fill the fields of a format."""

    def fill(match: re.Match[str]) -> str:
        if match[1] == "g":
            digits = "".join(draw.choices(ALPHABETS["h"], k=32))
            return "-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
        return "".join(draw.choices(ALPHABETS[match[1]], k=int(match[2] or 1)))

    return re.sub(r"\{([ahuldbng])(\d*)\}", fill, form)


def draw_password(draw: random.Random) -> str:
    """Draw a password as people and generators make them, eight characters or more."""
    names = (
        "Summer",
        "Falcon",
        "dragon",
        "Kestrel",
        "monday",
        "Winter",
        "copper",
        "Tiger",
        "rocket",
    )
    signs = "!@#$%&*+?"
    return draw.choice(
        (
            lambda: draw.choice(names) + str(draw.randrange(1990, 2030)) + draw.choice(signs),
            lambda: (
                draw.choice(names)
                + draw.choice("-_.")
                + draw.choice(names)
                + str(draw.randrange(10, 99))
                + draw.choice("!#")
            ),
            lambda: (
                "".join(draw.choices(UPPER + LOWER, k=6))
                + draw.choice(signs[:3])
                + "".join(draw.choices(DIGITS, k=4))
            ),
            lambda: draw_value("{a14}", draw)[:13] + draw.choice(DIGITS),
            lambda: (
                "Tr"
                + draw.choice(DIGITS)
                + "ub"
                + draw.choice(DIGITS)
                + "dor"
                + draw.choice("&%$")
                + draw.choice(DIGITS)
            ),
            lambda: draw.choice(names).lower() + str(draw.randrange(100, 9999)),
        )
    )()


def luhn_digit(digits: str) -> str:
    """Return the check digit that makes a payment card number right."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (2 - place % 2)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def draw_personal(kind: str, draw: random.Random, split: str) -> str:
    """Draw an address, a telephone number, a social security number or a card number."""
    if kind == "email":
        first, last = (
            draw.choice(("jane", "omar", "li", "petra")),
            draw.choice(("doe", "haddad", "wei", "novak")),
        )
        host = draw.choice(
            ("acme.io", "mail.bigcorp.co.uk")
            if split == "tuned"
            else ("gmail.com", "uni-jena.de", "x.dev")
        )
        return draw.choice(
            (f"{first}.{last}@{host}", f"{first}{draw.randrange(99)}@{host}", f"{first}+ci@{host}")
        )
    if kind == "phone":
        forms = (
            ("+49 151 {n8}", "(415) 55{n1}-{n4}", "+44 20 7{n3} {n4}", "212-55{n1}-{n4}")
            if split == "tuned"
            else (
                "+1-650-55{n1}-{n4}",
                "+33 6 {n2} {n2} {n2} {n2}",
                "+8190{n8}",
                "650.55{n1}.{n4}",
                "+48 60{n1} {n3} {n3}",
            )
        )
        return draw_value(draw.choice(forms), draw)
    if kind == "ssn":
        return (
            f"{draw.randrange(100, 600):03}-{draw.randrange(10, 99)}-{draw.randrange(1000, 9999)}"
        )
    form = draw.choice(
        ("4{n14}", "52{n13}")
        if split == "tuned"
        else ("37{n12}", "6011{n11}", "4{n14}", "2221{n11}")
    )
    digits = draw_value(form, draw)
    digits += luhn_digit(digits)
    if len(digits) == 16 and draw.random() < 0.7:
        mark = draw.choice(" -")
        return mark.join(digits[place : place + 4] for place in range(0, 16, 4))
    return digits


def draw_key(split: str, draw: random.Random) -> tuple[str, str]:
    """Draw a private key block; return the text that holds it and its secret middle line."""
    label = draw.choice(KEY_FORMS[split]) + "PRIVATE KEY"
    layout = draw.choice(KEY_LAYOUTS[split])
    rows = [draw_value("{b64}", draw) for _ in range(draw.randrange(4, 12))]
    lines = [
        f"-----BEGIN {label}-----",
        *rows,
        draw_value("{b30}==", draw),
        f"-----END {label}-----",
    ]
    if layout == "truncated":
        lines = lines[:-2]
    middle = rows[len(rows) // 2]
    text = {
        "plain": "\n".join(lines),
        "truncated": "\n".join(lines),
        "indented": "\n".join("    " + line for line in lines),
        "quoted": "\n".join("> " + line for line in lines),
        "escaped": '"key": "' + "\\n".join(lines) + '\\n"',
    }[layout]
    return text, middle


def draw_jwt(draw: random.Random) -> str:
    """Draw a web token with a true header."""
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": draw_value("{n8}", draw), "iat": 1}]
    encoded = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return ".".join((*encoded, draw_value("{d43}", draw)))


def prose(draw: random.Random, words: int) -> str:
    """Return a harmless sentence."""
    return " ".join(draw.choices(WORDS, k=words)).capitalize() + "."


def around(draw: random.Random, split: str, middle: str) -> str:
    """Return a note of about 400 characters with something in the middle."""
    before = f"{prose(draw, 12)} {prose(draw, 9)}\n"
    after = (
        f"\n{prose(draw, 14)}\n{draw_value(draw.choice(BENIGN[split]), draw)}\n{prose(draw, 6)}\n"
    )
    return before + middle + after


def secret_notes(split: str, seed: int, count: int = 440) -> list[Note]:
    """Return notes with one secret each, in the proportions of what people leak into notes."""
    draw = random.Random(f"{split}-{seed}")
    mix = {
        "token": 225,
        "context": 97,
        "password": 40,
        "connection": 28,
        "header": 13,
        "key": 13,
        "jwt": 8,
        "bare": 21,
    }
    notes = []
    for number in range(count):
        kind = draw.choices(list(mix), list(mix.values()))[0]
        if kind == "key":
            text, secret = draw_key(split, draw)
        elif kind == "connection":
            form = draw.choice(CONNECTIONS[split])
            secret = draw_value("{b86}==", draw) if "{k}" in form else draw_password(draw)
            secret = (
                secret.replace("#", "").replace("?", "").replace("%", "")
                if "://" in form
                else secret
            )
            text = form.replace("{k}", secret).replace("{s}", secret)
        elif kind == "header":
            form = draw.choice(HEADERS[split])
            field = re.search(r"\{\w+\}=*", form)
            assert field is not None
            secret = draw_value(field[0], draw)
            text = form.replace(field[0], secret)
        else:
            secret, sentence = {
                "token": lambda: (
                    draw_value(draw.choice(TOKENS[split]), draw),
                    draw.choice(TOKEN_SENTENCES[split]),
                ),
                "context": lambda: (
                    draw_value(draw.choice(CONTEXT_VALUES[split]), draw),
                    draw.choice(CONTEXT_SENTENCES[split]),
                ),
                "password": lambda: (draw_password(draw), draw.choice(PASSWORD_SENTENCES[split])),
                "jwt": lambda: (draw_jwt(draw), draw.choice(TOKEN_SENTENCES[split])),
                "bare": lambda: (
                    draw_value(draw.choice(BARE[split]), draw),
                    draw.choice(BARE_SENTENCES[split]),
                ),
            }[kind]()
            text = sentence.replace("{s}", secret)
        notes.append(Note(f"{kind}-{number}", around(draw, split, text), (secret,)))
    return notes


def personal_notes(split: str, seed: int, count: int = 120) -> list[Note]:
    """Return notes with one piece of personal data each."""
    draw = random.Random(f"{split}-personal-{seed}")
    notes = []
    for number in range(count):
        kind = ("email", "phone", "ssn", "card")[number % 4]
        secret = draw_personal(kind, draw, split)
        text = draw.choice(PERSONAL_SENTENCES[split]).replace("{s}", secret)
        notes.append(Note(f"{kind}-{number}", around(draw, split, text), (secret,), personal=True))
    return notes


def benign_notes(split: str, seed: int, count: int = 512) -> list[Note]:
    """Return notes of about 400 characters, full of what looks like secrets and is none."""
    draw = random.Random(f"{split}-benign-{seed}")
    notes = []
    for number in range(count):
        parts = [draw_value(draw.choice(BENIGN[split]), draw) for _ in range(5)]
        text = "\n".join(f"{prose(draw, draw.randrange(4, 9))}\n{part}" for part in parts)
        notes.append(Note(f"benign-{number}", text + "\n"))
    return notes
