"""A second labelled corpus: values of a *kind* in a *carrier*, and decoys that look like them.

It asks whether detectors know secrets and people, or only the sentences they were written for.
Detectors were written with the part `tuned`. `seen` and `judged` were each measured once before
anybody looked at what was missed in them; vendors, layouts and countries of one part stand in no
other. The same seed gives the same notes. No value stands here: formats
are those of `corpus.draw_value`, national ids are spelled backwards in `national_ids.tsv` (drawn at
random by the ranges of each country, and held for right by an independent library).
"""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from redaction.corpus import LOWER, UPPER, draw_password, draw_value, luhn_digit, prose


class Sample(NamedTuple):
    """A text with what must not stay of it; `parts` are the pieces that a carrier cut it into."""

    kind: str
    carrier: str
    text: str
    parts: tuple[str, ...]
    personal: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.carrier}"


PARTS = ("tuned", "seen", "judged")

VENDORS = {
    "tuned": (
        "ghp_{a36}",
        "glpat-{d20}",
        "AKIA{u16}",
        "xoxb-{n12}-{n12}-{a24}",
        "sk_live_{a24}",
        "sk-ant-api03-{d93}AA",
        "npm_{a36}",
        "SG.{d22}.{d43}",
        "dop_v1_{h64}",
        "hf_{a34}",
        "shpat_{h32}",
        "lin_api_{a40}",
        "PMAK-{h24}-{h34}",
        "GOCSPX-{d28}",
        "AIza{d35}",
        "acme_sk_{h40}",
        "qrx_live_{a32}",
        "zed-api-{h32}",
        "mq_secret_{l40}",
        "vnd_pat_{a44}",
    ),
    "seen": (
        "A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}",
        "hcaik_{l58}",
        "APP_USR-{n16}-{n6}-{h32}-{n9}",
        "ck_{h40}",
        "cs_{h40}",
        "xaat-{g}",
        "pina_{l32}{a32}",
        "tr_prod_{a20}",
        "BSA{d27}",
        "signkey-prod-{h64}",
        "cal_live_{h32}",
        "sec-c-{b48}",
        "KGAT_{h32}",
        "ory_at_{d43}",
        "CW-SECRET-{a40}",
        "sm_pat_{a24}",
        "ddp_{a36}",
        "hbp_{a30}",
        "Mid-server-{d24}",
        "persona_production_{g}",
        "bulk_live_{h48}",
        "quark.sk.{a40}",
        "fnb-key-{l36}",
        "oxide_token_{h40}",
        "trk_adm_{a30}",
        "GLW{u30}",
        "wf-prod-{a42}",
        "nx_{a40}",
    ),
    "judged": (
        "vlt_root_{a36}",
        "acme-token-{h48}",
        "bx_sk_live_{d32}",
        "zrn.pat.{a40}",
        "hk_{a48}",
        "orbit_api_{l40}",
        "plm-secret-{a32}",
        "XKEY-{u32}",
        "qz_access_{h40}",
        "nimbus_pat_{a22}_{a20}",
        "fx-live-{h64}",
        "tessera_adm_{g}",
        "uvw_rt_{a64}",
        "glsoat-{d20}",
        "sq0csp-{d43}",
        "dapi{h32}",
        "rk_live_{a24}",
        "ya29.{d120}",
        "gsk_{a52}",
        "kite_refresh_{d43}",
        "eyJhbGciOiJIUzI1NiJ9.eyJ{d60}.{d43}",
        "mono_test_sk_{a30}",
    ),
}
"""Vendors' formats; of each part some belong to nobody."""

KEYS = {
    "tuned": (
        "api key",
        "secret key",
        "auth token",
        "client secret",
        "access token",
        "signing secret",
        "webhook secret",
        "db password",
        "smtp password",
        "admin password",
    ),
    "seen": (
        "api token",
        "service key",
        "encryption key",
        "private token",
        "refresh token",
        "app secret",
        "session secret",
        "redis password",
        "root password",
        "ftp passwd",
        "ldap bind password",
        "consumer secret",
    ),
    "judged": (
        "gateway token",
        "master key",
        "license key",
        "account key",
        "bearer token",
        "hmac secret",
        "mysql password",
        "vpn password",
        "keystore password",
        "storage key",
        "bot token",
        "deploy token",
    ),
}
VALUES = {
    "tuned": ("{h32}", "{a32}", "{h64}", "{a40}", "{l36}", "{d43}", "{a20}", "{g}"),
    "seen": ("{h40}", "{a24}", "{l32}", "{d32}", "{b44}=", "{a18}", "{h48}", "{a64}"),
    "judged": ("{h32}", "{a28}", "{l40}", "{d36}", "{b43}=", "{a22}", "{h64}", "{a48}", "{g}"),
}

FRAMEWORKS = {
    "tuned": (
        "SECRET_KEY = 'django-insecure-{x50}'",
        "SECRET_KEY = '{x50}'",
        "production:\n  secret_key_base: {h128}",
        "APP_KEY=base64:{b43}=",
        "APP_SECRET={h32}",
        "define('AUTH_KEY',         '{w64}');",
        'app.secret_key = b"{h32}"',
        '<machineKey validationKey="{H128}" decryptionKey="{H64}" validation="SHA1" />',
        "NEXTAUTH_SECRET={b43}=",
    ),
    "seen": (
        'config :shop, ShopWeb.Endpoint, secret_key_base: "{b64}"',
        'play.http.secret.key="{x64}"',
        "define( 'NONCE_SALT', '{w64}' );",
        "define('SECURE_AUTH_SALT', '{w64}');",
        "app.use(session({ secret: '{a32}', resave: false }))",
        "$settings['hash_salt'] = '{d74}';",
        "'cookieValidationKey' => '{d32}',",
        "'crypt' => [\n    'key' => '{h32}'\n],",
        "public $secret = '{a16}';",
        "JWT_SECRET_KEY={h64}",
        "ADMIN_JWT_SECRET={b22}==",
        "Rails.application.secrets.secret_token = '{h128}'",
        "app.config['SECRET_KEY'] = '{h48}'",
        "FERNET_KEY={b43}=",
    ),
    "judged": (
        "SECRET_KEY_BASE={h128}",
        "app.config.update(SECRET_KEY='{a32}')",
        "Configure::write('Security.salt', '{a40}');",
        "    secret: '%env(APP_SECRET)%' # was {h32}, the app secret",
        "spring.security.jwt.secret={b64}",
        "APP_KEYS={b22}==,{b22}==",
        "define('LOGGED_IN_SALT',   '{w64}');",
        "SESSION_SECRET: '{d48}'",
        '"Jwt": {"Key": "{a44}"}',
        'signing.secret-key: "{a32}"',
    ),
}
HASHES = {
    "tuned": (
        "$2b$12${c53}",
        "$argon2id$v=19$m=65536,t=3,p=4${b22}${b43}",
        "$6${c16}${c86}",
        "pbkdf2_sha256$600000${a22}${b43}=",
        "{SSHA}{b38}==",
        "$1${c8}${c22}",
    ),
    "seen": (
        "$2y$10${c53}",
        "$2a$08${c53}",
        "$argon2i$v=19$m=4096,t=3,p=1${b22}${b43}",
        "$5$rounds=535000${c16}${c43}",
        "$y$j9T${c22}${c43}",
        "$apr1${c8}${c22}",
        "scrypt:32768:8:1${a16}${h128}",
        "pbkdf2:sha256:260000${a16}${h64}",
        "$P$B{c30}",
        "SCRAM-SHA-256$4096:{b22}==${b43}=:{b43}=",
        "*{H40}",
        "{PBKDF2}10000${b22}${b43}",
        "argon2$argon2id$v=19$m=102400,t=2,p=8${b22}${b43}",
        "$S$D{c52}",
    ),
    "judged": (
        "$2b$10${c53}",
        "$6$rounds=5000${c16}${c86}",
        "$7$CU..../....{c22}${c43}",
        "$H$9{c30}",
        "{SSHA512}{b100}==",
        "pbkdf2_sha256$870000${a22}${b43}=",
        "scrypt:32768:8:1${a16}${h128}",
        "$argon2id$v=19$m=19456,t=2,p=1${b22}${b43}",
        "$pbkdf2-sha512$25000${b22}${b86}",
        "$2x$12${c53}",
        "{CRYPT}$6${c16}${c86}",
        "$sha1$40000${c8}${c28}",
    ),
}
HASH_LAYOUTS = {
    "tuned": ("deploy:{s}", "hash: {s}", "| ops | {s} |", "password_hash = '{s}'"),
    "seen": (
        "root:{s}:19500:0:99999:7:::",
        "INSERT INTO users VALUES (1, 'bob', '{s}');",
        "the stored hash is {s}.",
        '"passwordHash": "{s}"',
        "id,login,hash\n1,bob,{s}",
    ),
    "judged": (
        "bob:{s}",
        "<td>{s}</td>",
        'encrypted_password: "{s}"',
        "it printed {s} twice",
    ),
}

LAYOUTS: dict[str, dict[str, tuple[str, ...]]] = {
    "prose": {
        "tuned": ("The {words} is {s}, do not share.", "our {words}: `{s}`"),
        "seen": (
            "We set the {words} to {s} last week.",
            "{words} is now **{s}** everywhere",
            "For staging use {s} as {words}.",
            "he mailed me the {words} ({s})",
        ),
        "judged": (
            "Their {words} was {s} until May.",
            "Note to self: {words} = {s}",
            "my {words}: {s}!",
            "You need the {words} \u201c{s}\u201d for it.",
        ),
    },
    "yaml": {
        "tuned": ("app:\n  {snake}: {s}\n  port: 80", "{camel}: '{s}'"),
        "seen": (
            '- name: {upper}\n  value: "{s}"',
            '{kebab}: "{s}"  # rotate',
            "{snake}: !!str {s}",
            "env: {{ {upper}: {s} }}",
            "{snake}: &k {s}",
        ),
        "judged": (
            "{upper}: {s}",
            'spec:\n  auth:\n    {camel}: "{s}"',
            "{snake}: '{s}' # dev",
        ),
    },
    "toml": {
        "tuned": ('[auth]\n{snake} = "{s}"',),
        "seen": ("[a.b]\n{kebab} = '{s}'", 'a = {{ {snake} = "{s}", n = 1 }}'),
        "judged": (
            "{snake}='{s}'",
            '[x]\n"{kebab}" = "{s}"',
        ),
    },
    "env": {
        "tuned": ("{upper}={s}", 'export {upper}="{s}"'),
        "seen": ("ACME_{upper}='{s}'\nDEBUG=1", "set {upper}={s}", "X=1\n{upper} = {s}"),
        "judged": (
            "{upper}={s} # dev",
            "export {upper}='{s}';",
            "APP__{upper}={s}",
        ),
    },
    "csv": {
        "tuned": ("name,{snake}\nci,{s}\n", "id;{words};note\n1;{s};x"),
        "seen": (
            '"user","{words}"\n"ops","{s}"',
            "host\t{snake}\ndb1\t{s}\n",
            "service,{upper},owner\nmail,{s},bob\n",
        ),
        "judged": (
            "host,user,{snake}\nh1,ops,{s}\n",
            "{words};host\n{s};db1\n",
            "a\t{upper}\n1\t{s}",
        ),
    },
    "table": {
        "tuned": ("| name | {words} |\n|---|---|\n| ci | {s} |",),
        "seen": (
            "| {words} | `{s}` |",
            "|env|{words}|\n|:--|:-:|\n|prod|{s}|\n",
            "| {snake} | {s} | prod |",
            "+------+----------+\n| {words} | {s} |\n+------+----------+",
        ),
        "judged": (
            "| {words} |\n| --- |\n| {s} |",
            "| # | {words} | who |\n|---|:---|---|\n| 1 | **{s}** | ops |",
            "| {upper} | `{s}` | ci |",
        ),
    },
    "json": {
        "tuned": ('{{"{camel}": "{s}"}}', '{{\n  "{snake}":"{s}",\n  "a": 1\n}}'),
        "seen": (
            '"[{{\\"{camel}\\": \\"{s}\\"}}]"',
            '{{"name": "{upper}", "value": "{s}"}}',
            '{{"key": "{snake}", "value": "{s}"}}',
        ),
        "judged": (
            '{{"auth":{{"{camel}":"{s}"}}}}',
            '{{"{kebab}" : "{s}"}}',
            '{{"{upper}":"{s}","x":null}}',
        ),
    },
    "code": {
        "tuned": (
            '{snake} = "{s}"',
            "const {camel} = '{s}';",
            'String {camel} = "{s}";',
            "define('{upper}', '{s}');",
            '{camel} := "{s}"',
        ),
        "seen": (
            'System.setProperty("app.{camel}", "{s}");',
            "ENV['{upper}'] = '{s}'",
            'public const string {pascal} = "{s}";',
            'config["{camel}"] = "{s}"',
            'let {snake}: &str = "{s}";',
            "client({camel}='{s}')",
            "{snake}: '{s}',",
            "@{camel} = %q({s})",
            '#define {upper} "{s}"',
            'val {camel}: String = "{s}"',
            '.{camel}("{s}")',
            "my ${snake} = '{s}';",
            '{snake} <- "{s}"',
        ),
        "judged": (
            'var {camel} = "{s}"',
            "self.{snake} = '{s}'",
            'private final String {upper} = "{s}";',
            "'{snake}' => '{s}',",
            "{camel} = `{s}`",
            'os.environ["{upper}"] = "{s}"',
            'std::string {camel} = "{s}";',
            'connect(host, {snake}="{s}")',
            'static let {camel} = "{s}"',
            "set_{snake}('{s}')",
            ':{snake} => "{s}"',
            '({kebab} "{s}")',
        ),
    },
    "log": {
        "tuned": ("2026-02-01T10:00:00Z INFO {snake}={s} user=bob",),
        "seen": (
            "[2026-03-01 10:00:00] DEBUG auth: sent {words}: {s} (200)",
            'level=debug msg="login" {camel}="{s}"',
            "POST /v1?{snake}={s}&page=2 HTTP/1.1",
        ),
        "judged": (
            "10:00:01 W http: {camel}={s}; retry",
            "DEBUG {{'{snake}': '{s}'}}",
            "auth failed, {words} {s} expired",
        ),
    },
    "shell": {
        "tuned": ("run --{kebab} {s} --wait", "{upper}={s} ./run"),
        "seen": (
            "acme login --{kebab}='{s}'",
            "docker run -e {upper}={s} acme/app",
            "kubectl create secret generic x --from-literal={kebab}={s}",
            "helm upgrade x . --set auth.{camel}={s}",
        ),
        "judged": (
            "echo {s} > {snake}.txt; export {upper}={s}",
            "tool --{kebab} '{s}'",
            "env {upper}='{s}' make",
        ),
    },
}
"""Layouts of a value with its name, by carrier. A name is spelled as the carrier spells names."""

PASSWORD_FILES = {
    "tuned": ("db1.acme.io:5432:app:ops:{s}", "machine ci.acme.io login bot password {s}"),
    "seen": (
        "*:*:*:postgres:{s}",
        "10.0.0.7:6432:*:svc-app:{s}",
        "db-2:5433:shop:reader:{s}\n",
        "machine git.acme.io\n  login bot\n  password {s}",
        "default login anon password {s}",
        "machine api.acme.io\nlogin ops\npassword {s}\nmachine x.acme.io",
    ),
    "judged": (
        "localhost:5432:*:admin:{s}",
        "pg.acme.io:*:app:app:{s}",
        "machine x.acme.io login y password {s} account z",
        "machine ftp.acme.io\n\tlogin me\n\tpassword {s}\n",
    ),
}
"""Lines of .pgpass and .netrc."""

BARE = {
    "tuned": ("Use {s} for that.", "token: {s}", 'x = "{s}"', "| ci | {s} |", "- {s}\n"),
    "seen": (
        "It worked with {s}.",
        "<li>{s}</li>",
        "value,{s},1",
        "{s}",
        "(see {s})",
        "curl -H 'X-Auth: {s}' https://api.acme.io",
        "'{s}',",
        "log: sent {s} ok",
    ),
    "judged": (
        "I ran it with {s} and it passed.",
        "key \u2192 {s}",
        "<code>{s}</code>",
        "{s} # old",
        "| {s} | x |",
        "https://api.acme.io/?t={s}",
        '"{s}": 1',
        "x=({s})",
    ),
}
"""Layouts without a name, for what gives itself away."""


def _cut(value: str, draw: random.Random, pieces: int = 0) -> tuple[str, ...]:
    """Cut a value into two or three parts of five characters or more."""
    count = pieces or draw.choice((2, 2, 3))
    while len(value) < count * 5:
        count -= 1
    places = sorted(draw.sample(range(1, len(value) // 5), count - 1))
    cuts = [0, *(place * 5 for place in places), len(value)]
    return tuple(value[a:b] for a, b in pairwise(cuts))


SPLITS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "quoted-printable": {
        "tuned": (("{snake}=3D{p}\nbye=20now", "=\n"),),
        "seen": (("Subject: x\n\nthe {words} is {p}\n=C3=A9", "=\n"), ("{upper}=3D{p}", "=\r\n")),
        "judged": (
            ("key=3D20\n{camel}: {p}=20", "=\n"),
            ("The {words} is {p}.=20\n", "=\n"),
        ),
    },
    "folded": {
        "tuned": (("{snake}: >-\n  {p}\nport: 1", "\n  "), ("X-{kebab}: {p}", "\n ")),
        "seen": (
            ("{camel}: >\n    {p}\n", "\n    "),
            ('{snake}: "{p}"', "\n  "),
            ("{kebab}: |\n  {p}\n\nnext: 1", "\n  "),
            ("Set-{kebab}: {p}\r\nDate: x", "\r\n\t"),
        ),
        "judged": (
            ("{upper}: >-\n      {p}\n", "\n      "),
            ("{snake}: '{p}'", "\n    "),
            ("Auth-{kebab}: {p}\n", "\n   "),
        ),
    },
    "wrapped": {
        "tuned": (("# {words}: {p}", "\n# "), ("the {words} is {p}", "\n")),
        "seen": (
            ("// {words} = {p}", "\n// "),
            ("> {words}: {p}", "\n> "),
            ("{words}:\n{p}", "\n"),
            (" * {words}: {p}\n */", "\n * "),
            ("-- {words} {s} was: {p}", "\n-- "),
        ),
        "judged": (
            ("; {words}: {p}", "\n; "),
            ("/// {words} {p}\nfn x()", "\n/// "),
            ("My {words} is:\n\n    {p}\n", "\n    "),
            ("{words}: {p}.", "\n"),
        ),
    },
    "backslash": {
        "tuned": (("{upper}={p}", "\\\n"), ('{snake} = "{p}"', "\\\n")),
        "seen": (("export {upper}={p}", "\\\n    "), ("set {kebab} {p}", "\\\r\n")),
        "judged": (
            ("{upper}={p} make", "\\\n"),
            ("#define {upper} {p}", "\\\n  "),
            ("'{kebab}': '{p}'", "\\\n"),
        ),
    },
    "concatenated": {
        "tuned": (('{snake} = "{p}"', '" + "'), ("{camel} = '{p}'", "'\n  '")),
        "seen": (
            ('${snake} = "{p}";', '" . "'),
            ("{snake} = ('{p}')", "'\n    '"),
            ('{camel} := "{p}"', '" +\n\t"'),
            ('{upper} = "{p}"', '" & _\n  "'),
            ("local {camel} = '{p}'", "' .. '"),
            ('{snake} <- paste0("{p}")', '", "'),
            ("const {camel} = ['{p}'].join('')", "', '"),
            ('{snake}: "{p}"', '" \\\n  "'),
            ("{snake} = '{p}'", "' || '"),
            ("{camel} = '{p}'", "'\n{camel} += '"),
        ),
        "judged": (
            ('{camel} = "{p}";', '"\n  + "'),
            ("{snake}: '{p}'", "' ~ '"),
            ('var {camel} = "{p}"', '"+"'),
            ('{upper} = ("{p}")', '"\n          "'),
            ("{snake} = ''.join(['{p}'])", "', '"),
            ('{camel} = "{p}"', '" <> "'),
            ("SELECT CONCAT('{p}') AS {snake}", "', '"),
            ("${camel} = '{p}'", "'.\n  '"),
        ),
    },
    "emphasis": {
        "tuned": (("{words}: {p}", "**"), ("{snake}={p}", "*")),
        "seen": (
            ("the {words} is {p}", "~~"),
            ("{words}: *{p}*", "*"),
            ("{words}: <b>{p}</b>", "</b>"),
            ("{words}: {p}", "<wbr>"),
            ("{words}: `{p}`", "``"),
            ("{snake}: {p}", "***"),
        ),
        "judged": (
            ("{words}: **{p}**", "**"),
            ("{words} is {p}", "__"),
            ("{words}: {p}", "<em>"),
            ("{words} = {p}", "`"),
        ),
    },
    "zero-width": {
        "tuned": (("{words}: {p}", "\u200b"), ("{snake}={p}", "\xad")),
        "seen": (
            ("{upper}={p}", "\u200c"),
            ("the {words} is {p}", "\u2060"),
            ("{words}: {p}", "\ufeff"),
            ("{camel}: '{p}'", "\u200d"),
            ("({words}: {p})", "&shy;"),
            ("{words}: {p}", "\u180e"),
            ("{words}: {p}", "&#8203;"),
        ),
        "judged": (
            ("{words} = {p}", "\u200b\u200b"),
            ("{snake}: {p}", "\u00ad"),
            ('{camel}="{p}"', "&zwnj;"),
            ("{words}: {p}", "&#xAD;"),
            ("{words}: {p}", "\u200e"),
        ),
    },
}
"""Layouts that cut a value, with what stands between its parts."""

EMAIL_HOSTS = {
    "tuned": ("acme.io", "bigcorp.co.uk"),
    "seen": ("gmail.com", "uni-jena.de", "x.dev"),
    "judged": ("proton.me", "kth.se", "big.co.jp", "startup.technology"),
}
SPELLED = {
    "tuned": ("{l} at {d} dot {t}", "{l} [at] {d} [dot] {t}", "{l}(at){d}.{t}"),
    "seen": (
        "{l} (at) {d} (dot) {t}",
        "{l} AT {d} DOT {t}",
        "{l}[at]{d}.{t}",
        "{l} <at> {d} <dot> {t}",
        "{l}&#64;{d}.{t}",
        "{l}%40{d}.{t}",
        "{l} {{at}} {d} {{dot}} {t}",
        "{l} at {d}.{t}",
        "{l}\uff20{d}.{t}",
        "{l} _at_ {d} _dot_ {t}",
        "{l} @ {d} . {t}",
    ),
    "judged": (
        "{l} [AT] {d} [DOT] {t}",
        "{l} {{at}} {d}.{t}",
        "{l} at {d} dot {t}",
        "{l}_at_{d}_dot_{t}",
        "{l}(at){d}(dot){t}",
        "{l} ( at ) {d} ( dot ) {t}",
        "{l}&commat;{d}.{t}",
        "{l} [@] {d}.{t}",
    ),
}
PHONES = {
    "tuned": (
        "+49 151 {n8}",
        "(415) 55{n1}-{n4}",
        "+44 20 7{n3} {n4}",
        "030 2{n7}",
        "01 42 {n2} {n2} {n2}",
        "tel:+49-30-2{n7}",
        "0151-2{n7}",
        "+33 (0)6 {n2} {n2} {n2} {n2}",
    ),
    "seen": (
        "+1-650-55{n1}-{n4}",
        "650.55{n1}.{n4}",
        "+8190{n8}",
        "+48 60{n1} {n3} {n3}",
        "0049 30 2{n7}",
        "020 7946 1{n3}",
        "07700 9{n2} {n3}",
        "06 12 {n2} {n2} {n2}",
        "0171/2{n6}",
        "tel:+1-650-55{n1}-{n4}",
        "tel:06{n8}",
        "(030) 2{n3} {n4}",
        "03-5{n3}-{n4}",
        "090-1{n3}-{n4}",
        "(02) 9{n3} {n4}",
        "0412 3{n2} {n3}",
        "(11) 9{n4}-{n4}",
        "044 668 {n2} {n2}",
        "+39 06 6{n3} {n4}",
        "+55 11 9{n4}-{n4}",
        "+91 98{n3} {n5}",
        "+31 6 {n8}",
        "010-2{n3}-{n4}",
        "02 1234 {n4}",
        "06.12.{n2}.{n2}.{n2}",
        "+1 (650) 55{n1} {n4}",
        "08-12{n1} {n3} {n2}",
    ),
    "judged": (
        "+44 7911 1{n5}",
        "+1 415 55{n1} {n4}",
        "+1.415.55{n1}.{n4}",
        "(0171) 2{n6}",
        "0 30 / 2{n3} {n4}",
        "+86 138 {n4} {n4}",
        "+34 612 {n2} {n2} {n2}",
        "+61 4{n2} {n3} {n3}",
        "0033 6 {n2} {n2} {n2} {n2}",
        "01-42-{n2}-{n2}-{n2}",
        "0161 496 0{n3}",
        "+49 (0)89 2{n6}",
        "tel:+44-20-7946-{n4}",
        "sms:+4930{n7}",
        "079 {n3} {n2} {n2}",
        "06-1{n7}",
        "0921 {n3} {n4}",
        "+7 (495) {n3}-{n2}-{n2}",
        "(21) 2{n3}-{n4}",
        "09{n2}-{n3}-{n3}",
        "+65 9{n3} {n4}",
        "+972-54-{n3}-{n4}",
        "011 4{n3} {n4}",
    ),
}
NAMED_PHONES = {
    "tuned": ("phone: {n}", "{n} (mobile)", "tel {n}"),
    "seen": (
        "call me: {n}",
        "{n} is my cell",
        "fax {n}",
        "phone,{n}",
        "mobile={n}",
        "{n} (Telefon)",
        '"phoneNumber": "{n}"',
        "Handy: {n}",
        "WhatsApp {n}",
        "{n} - home phone",
        "| tel | {n} |",
        "numéro de téléphone : {n}",
        "móvil {n}",
        "phone_number,{n},x",
    ),
    "judged": (
        "my number is {n} (phone)",
        "Phone - {n}",
        "cell: {n}",
        "T\u00e9l\u00e9phone {n}",
        "{n}, mobile",
        "mobile_number: '{n}'",
        "fax={n}",
        "ring {n} after six",
        "name,phone\nbob,{n}\n",
        "| who | mobile |\n|---|---|\n| al | {n} |",
        "Tel.: {n}",
        "landline is {n}",
    ),
}
BARE_PHONES = {
    "tuned": ("415555{n4}", "0151{n8}", "6{n8}"),
    "seen": (
        "650253{n4}",
        "07700{n6}",
        "612345{n3}",
        "06{n8}",
        "4930{n8}",
        "98{n8}",
        "1650253{n4}",
        "601 {n3} {n3}",
        "20 12 {n2} {n2}",
        "91 234 {n2} {n2}",
    ),
    "judged": (
        "415867{n4}",
        "0171{n7}",
        "0033612{n6}",
        "4479111{n5}",
        "212 867 {n4}",
        "0791234{n3}",
        "5{n2} {n3} {n3}",
    ),
}
CARDS = {
    "tuned": ("4{n14}", "52{n13}"),
    "seen": ("37{n12}", "6011{n11}", "4{n14}", "2221{n11}", "35{n2}"),
    "judged": ("34{n12}", "65{n13}", "4{n14}", "54{n13}", "36{n11}", "62{n13}"),
}
IBANS = {
    "tuned": ("DE{k}{n18}", "FR{k}{n10}{u11}{n2}"),
    "seen": (
        "GB{k}NWBK{n14}",
        "NL{k}INGB{n10}",
        "ES{k}{n20}",
        "IT{k}{u1}{n22}",
        "CH{k}{n17}",
        "NO{k}{n11}",
        "PL{k}{n24}",
        "BE{k}{n12}",
        "AT{k}{n16}",
        "SE{k}{n20}",
    ),
    "judged": (
        "PT{k}{n21}",
        "DK{k}{n14}",
        "FI{k}{n14}",
        "IE{k}AIBK{n14}",
        "LU{k}{n16}",
        "CZ{k}{n20}",
        "TR{k}{n22}",
        "GR{k}{n23}",
        "SA{k}{n20}",
    ),
}
NATIONS = {
    "tuned": ("fr", "es", "de", "it", "pl", "ca", "br", "fi", "in", "ch", "no", "cl", "mx"),
    "seen": (
        "nl",
        "be",
        "se",
        "dk",
        "cz",
        "ro",
        "pt",
        "tr",
        "za",
        "kr",
        "cn",
        "es-nie",
        "au",
        "ee",
        "gr",
        "ar",
        "bg",
        "hr",
        "ie",
        "th",
        "my",
        "nhs",
    ),
    "judged": ("lt", "is", "il", "at", "ua", "do", "si", "jp", "sk", "pl", "br", "kr", "be"),
}
NATION_NAMES = {
    "de": "Steuer-ID",
    "pl": "PESEL",
    "ca": "SIN",
    "in": "Aadhaar",
    "nl": "BSN",
    "ro": "CNP",
    "pt": "NIF",
    "tr": "T.C. Kimlik No",
    "za": "SA ID number",
    "au": "TFN",
    "ee": "isikukood",
    "gr": "AMKA",
    "bg": "EGN",
    "hr": "OIB",
    "ie": "PPS number",
    "nhs": "NHS number",
    "no": "personnummer",
    "th": "Thai ID",
    "il": "Teudat Zehut",
    "at": "SVNR",
    "ua": "RNOKPP tax no",
    "jp": "My Number",
    "si": "EMSO",
}
"""Names of ids that are bare digits: nobody can tell these from an order number without."""
PERSONAL_LAYOUTS = {
    "tuned": {
        "prose": ("Ask {s} about it.", "reported by ({s})"),
        "yaml": ("owner: {s}",),
        "csv": ("1,bob,{s},x",),
        "json": ('{{"contact": "{s}"}}',),
        "table": ("| Bob | {s} |",),
    },
    "seen": {
        "prose": (
            "{s} reported it.",
            "The form had {s} in it.",
            "e.g. {s};",
            "Reached him ({s}) today",
        ),
        "yaml": ("- {s}", "user: '{s}'"),
        "csv": ("{s},7,2026-01-01", "a;{s};b", "x\t{s}\ty", '1,"{s}",12/29'),
        "json": ('["{s}"]', '{{"a": 1, "b": "{s}"}}'),
        "table": ("|{s}|x|", "| 7 | `{s}` |"),
        "log": ("user={s} status=200", "[warn] dropped {s}"),
        "code": ('x = "{s}"', "f('{s}')"),
        "emphasis": ("**{s}**", "_{s}_"),
    },
    "judged": {
        "prose": ("It was {s} who called.", "from {s}, I think", "I (i.e. {s}) agree", "ok? {s}!"),
        "yaml": ("x: [{s}, 1]", 'a:\n  - "{s}"'),
        "csv": ("1\t{s}", "id,{s}\n", "{s};x", "7,{s},"),
        "json": ('{{"k":"{s}"}}', '[1,"{s}",2]'),
        "table": ("| {s} |", "| **{s}** | a |"),
        "log": ("to={s};ok", "INFO <{s}> in"),
        "code": ("f(x='{s}')", "// {s}"),
        "emphasis": ("***{s}***", "~~{s}~~"),
    },
}

DECOYS = {
    "tuned": (
        "customer cus_{a14} paid",
        "pi_{a24}",
        "evt_1{a23}",
        "vpc-{h17} in eu",
        "i-0{h16}",
        "thread_{a24}",
        "msg_{a24}",
        "sha256:{h64}",
        "/nix/store/{l32}-openssl-3.0.13",
        "Qm{z44}",
        "|1|{b27}=|{b27}= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43}",
        "x = weights@inputs.T",
        "data:image/png;base64,iVBORw0KGgo{b90}",
        "-> X25519 {b43}",
        "JANE.DOE@COMPANY.COM",
        "first.last@yourcompany.com",
        "api_key = YOUR_API_KEY",
        "token: XXXXXXXXXXXXXXXX",
        "AC{h32} is the account",
        "order 20260222{n4}",
        "commit {h40}",
        "@app.route('/x')",
        "+1 (XXX) XXX-XXXX",
        "the cache is at 10.0.{n2}.{n2}:5432",
        "price 1.234.{n3},00",
    ),
    "seen": (
        "sub_1{a23}",
        "price_1{a23}",
        "req_{a14} failed",
        "org-{a24}",
        "asst_{a24}",
        "run_{a24}",
        "acct_1{a15}",
        "prod_{a14}",
        "ami-{h17}",
        "subnet-{h17}",
        "AROA{u17}",
        "AIDA{u17}",
        "sg-{h17}",
        "PR_kwDO{a16}",
        "SM{h32} delivered",
        "proj_{a24}",
        "file-{a24}",
        "prj_{a24}",
        "dpl_{a28}",
        "gid://shopify/Order/{n13}",
        "resp_{h48}",
        "chatcmpl-{a29}",
        "toolu_01{a22}",
        "call_{a24}",
        "bafybeig{l51}",
        "ipfs://Qm{z44}/a",
        "blake3:{h64}",
        "sha1-{b27}=",
        "sha512-{b86}==",
        "/gnu/store/{l32}-gcc-12",
        "~/.cargo/registry/src/index.crates.io-{h16}/serde-1.0.{n2}",
        ".yarn/cache/lodash-npm-4.17.21-{h10}-{h64}.zip",
        "/nix/store/{l32}-glibc-2.38/lib/libc.so",
        ".pnpm/react-dom@18.2.0_react@18.2.0/node_modules",
        "conda/pkgs/numpy-1.26-py311h{h7}_0",
        "~/.npm/_cacache/content-v2/sha512/{h2}/{h2}/{h124}",
        "bazel-out/k8-fastbuild/{h32}",
        "|1|{b27}=|{b27}= ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAI{b100}=",
        "-> ssh-ed25519 {b6} {b43}\n{b43}\n--- {b43}",
        "age1{l58}",
        "-> scrypt {b22} 18\n{b43}",
        "data:font/woff2;base64,d09GMgABAAAA{b90}",
        "url(data:image/webp;base64,UklGR{b80})",
        "data:application/wasm;base64,AGFzbQ{b90}",
        "src='data:audio/ogg;base64,T2dnUw{b80}'",
        "return q@k.transpose(1, 2)",
        "y = x@self.weight.data",
        "loss = model@batch.view(-1)",
        "class Foo@Bar.baz",
        "import a from '@scope/pkg.sub'",
        "pip install x@git+https://a.b/c",
        "user@host.domain",
        "USER@EXAMPLE.COM",
        "NAME@MAIL.DOMAIN.COM",
        "you@company.com",
        "ssh deploy@web-1.acme.io",
        "scp a.txt ops@db.acme.io:/tmp",
        "ADMIN@CORP.LOCAL",
        "look at the dot net runtime",
        "we met at acme dot plots",
        "meet at noon.",
        "password = <PASSWORD>",
        "SECRET_KEY=CHANGE_ME_PLEASE",
        "token: <insert token here>",
        "apiKey: 'sk_live_XXXXXXXXXXXXXXXXXXXXXXXX'",
        "password: PASSWORD",
        "secret: ${SECRET}",
        "API_TOKEN=__API_TOKEN__",
        'auth_token: \'{{ lookup("env", "TOKEN") }}\'',
        "db_password = var.db_password",
        "token = get_token(user_id)",
        "passwd: ********",
        "AKIAIOSFODNN7EXAMPLE",
        "INVALID_AUTH_TOKEN_PROVIDED",
        "HTTP_PROXY_AUTHENTICATION_REQUIRED",
        "$2b$12$...",
        "$argon2id$ hashes",
        "algorithm: pbkdf2:sha256",
        "version 20.12.2024",
        "2024 01 02 03 04 05",
        "1 234 567 890",
        "ids 100 200 300 400",
        "range 0100-0200-0300",
        "serial 0012 3456 7890",
        "part no. 12-345-678",
        "ISBN 978-0-306-40615-7",
        "EAN 4006381333931",
        "DE89 is a road",
        "RFC 2119 3339 8259",
        "x: 0000000000000000",
        "5555 4444 3333 2222",
        "tel: n/a",
        "phone: <phone>",
        "call 3 times",
        "mobile first",
        "fax 0",
        "port 8080 8443 9090",
        "timestamp 17{n8}",
        "17{n11}",
        "at 2026-02-22 10:11:12.{n6}",
        "lat 48.{n6}, lon 11.{n6}",
        "postgres://user:password@localhost:5432/db",
        "host:5432:db:user:<password>",
        "machine x login y password <token>",
        "uuid {g}",
        "trace {h32}",
        'etag W/"{h32}"',
        "1e-{n2} and 0x{h16}",
        "rgb(12 34 56 78 90)",
        "12345678-1234-1234-1234-123456789012",
        "line one\nline two\nAbstractFactory\nServiceProvider",
        "see\nsrc/app.py\nsrc/b2.py",
        "*foo*bar*baz*",
        '"a" + "b" + suffix',
        "cat a.txt \\\n  b2.txt \\\n  c3.txt",
        "| a1 | b2 |\n|----|----|\n| c3 | d4 |",
        "{h40}\n{h40}\n{h40}",
        "{h64}  a.tar.gz\n{h64}  b.tar.gz",
        "-----BEGIN CERTIFICATE-----\n{b64}\n{b64}\n{b30}==\n-----END CERTIFICATE-----",
        "token:\n  type: bearer\n  ttl: 3600s",
        "password:\n- min: 12\n- max: 64",
        "a,b,c\n1,2,3\n4,5,6",
        "user,token_count\nbob,4096",
        "key,value\nretries,3",
        "login,commits\nbob,{h40}",
    ),
    "judged": (
        "si_{a14}",
        "in_1{a23}",
        "seti_1{a23}",
        "vs_{a24}",
        "ft-{a24}",
        "team_{a24}",
        "usr_{a20}",
        "tx_{a16}",
        "wrk_{a22}",
        "job_{a26}",
        "eni-{h17}",
        "arn:aws:s3:::bucket-{h12}",
        "projects/x/locations/eu/keyRings/k{n4}",
        "I_kwDO{a16}",
        "MG{h32} sent",
        "ws_{a21}",
        "snap-{h17}",
        "rtb-{h17}",
        "AGPA{u17}",
        "task-{g}",
        "node/{h40}",
        "oci://r.io/a@sha256:{h64}",
        "b3sum {h64}",
        "tree {h40}",
        "/nix/store/{l32}-python3-3.12.4-env/bin/python",
        "/gnu/store/{l32}-guile-3.0.9/lib",
        "pnpm: /lodash@4.17.21(patch_hash={l26})",
        "~/.m2/repository/org/acme/core/1.{n1}/core-1.{n1}.jar",
        "vendor/cache/ruby/3.3.0/gems/nokogiri-1.16.{n1}-x86_64-linux",
        "~/.cache/go-build/{h2}/{h64}-d",
        "~/.cache/uv/archive-v0/{d21}",
        "~/.cache/pip/http-v2/{h1}/{h1}/{h1}/{h56}",
        "bafkrei{l52}",
        "|1|{b27}=|{b27}= ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{b100}",
        "-> piv-p256 {b6} {b44}\n{b43}\n--- {b43}",
        "recipient: age1{l58}",
        "data:image/jpeg;base64,/9j/4AAQSkZJRg{b90}",
        "data:video/mp4;base64,AAAAIGZ0eXBpc29t{b90}",
        '<img src="data:image/gif;base64,R0lGODlh{b80}">',
        "grad = loss@weights.mean(0)",
        "out = a@b.reshape(2, 3)",
        "obj@prop.name = 1",
        "JOHN@CORP.COM",
        "SUPPORT@BIGCORP.CO.UK",
        "email@domain.com",
        "yourname@yourdomain.io",
        "xxx@xxx.com",
        "rsync -av a/ me@host1.acme.io:b",
        "ssh -p 2222 root@vm.acme.io",
        "ssh://git@git.acme.io/a.git",
        "mailto:{{{{user}}}}@{{{{host}}}}",
        "npm i @acme/ui@2.{n1}.0",
        "actions/checkout@v4.1.{n1}",
        "look at main dot py",
        "he stood at the front dot",
        "meet me at acme dot",
        "aim at 99 dot 9",
        "API_KEY=<API_KEY>",
        "token=REDACTED",
        "password=**********",
        "secret: !secret db_pw",
        "token: process.env.TOKEN",
        "SECRET=$(pass show x)",
        "apikey: null",
        "pwd = input()",
        "PASSWORD: ${PASSWORD:?missing}",
        "client_secret = data.vault.x.y",
        "key: {{{{ .Values.key }}}}",
        "auth = HTTPBasicAuth(user, pw)",
        "TOKEN_EXPIRED_ERROR_CODE",
        "ACCESS_TOKEN_COOKIE_NAME_PREFIX",
        "$2a$10$<hash>",
        "hash is bcrypt, cost 12",
        "sha512crypt $6$ prefix",
        "1 415 times",
        "room 415-2",
        "2026/02/{n2} 10:00:00",
        "v2026.02.{n2}",
        "9 to 5, 24/7",
        "0.{n8} of 1",
        "10.{n2}.{n2}.{n2}:8080",
        "+/- 0.{n3}",
        "build 1{n9}",
        "17{n8}.{n6}",
        "pid 12{n3} tid 34{n5}",
        "size 1{n9} bytes",
        "call 1{n9} times",
        "phone screen 1080 2400 px",
        "12 34 56 78",
        "1,234,567,890",
        "ISBN 0-306-40615-2",
        "ISSN 2049-363{n1}",
        "doi:10.1000/xyz{n3}",
        "RFC 5322, RFC 6531",
        "40-bit and 128-bit",
        "lot 2024-0{n3}",
        "GPS 52.{n6} 13.{n6}",
        "4000 0000 0000 0001",
        "DE00 0000 0000 0000 0000 00",
        "IT is 12 34 here",
        "123456-1234-x",
        "row 900101-x",
        "user,tokens_used\nbob,4096",
        "key,count\nab12cd34ef56ab12cd34,3",
        "pass,fail\n12,3",
        "Token|Meaning\n---|---\nEOF|end of file",
        "steps:\n  - run: make a1\n  - run: make b2",
        "first line ends with abc123\nand goes on",
        "cp a1.txt \\\n  b2.txt",
        "'it''s' + \"ok\"",
        "{h7} fix a\n{h7} fix b",
        "sha1  {h40}\nsha1  {h40}",
        "password:\n  description: The Password1 field",
        "- token: string\n- secret: string",
        "**bold**text and _it_alic",
        "a*b*c = d",
        "`code`s and `more`ish",
        "2**10**2",
    ),
}
"""What looks like a secret or a person and is none."""

MORE_ALPHABETS = {
    "c": UPPER + LOWER + "0123456789./",
    "H": "0123456789ABCDEF",
    "z": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "x": LOWER + "0123456789!@#$%^&*(-_=+)",
    "w": UPPER + LOWER + "0123456789!@#$%^&*()-_[]{}<>~+=,.;:/?|",
}
MORE_FIELDS = re.compile(r"\{([cHxwz])(\d+)\}")


def fill(form: str, draw: random.Random) -> str:
    """Fill the fields of a format, those of this corpus first."""

    def drawn(match: re.Match[str]) -> str:
        return "".join(draw.choices(MORE_ALPHABETS[match[1]], k=int(match[2])))

    return draw_value(MORE_FIELDS.sub(drawn, form), draw)


def named(layout: str, name: str, value: str) -> str:
    """Put a value with its name into a layout, the name as the carrier spells names."""
    words = name.split()
    spelled = {
        "words": name,
        "snake": "_".join(words),
        "kebab": "-".join(words),
        "upper": "_".join(words).upper(),
        "pascal": "".join(word.capitalize() for word in words),
        "camel": words[0] + "".join(word.capitalize() for word in words[1:]),
    }
    for spelling, text in spelled.items():
        layout = layout.replace("{" + spelling + "}", text)
    return layout.replace("{{", "{").replace("}}", "}").replace("{s}", value)


def _around(draw: random.Random, middle: str) -> str:
    return f"{prose(draw, 9)}\n\n{middle}\n\n{prose(draw, 8)}\n"


def _secret(kind: str, half: str, draw: random.Random) -> tuple[str, str]:
    """Draw the name and the value of a secret."""
    if kind == "vendor":
        return draw.choice(("service", "deploy", "token")), fill(draw.choice(VENDORS[half]), draw)
    name = draw.choice(KEYS[half])
    if "pass" in name:
        signs = dict.fromkeys(map(ord, "#$&*%;,|"), "!")
        return name, draw_password(draw).translate(signs)
    return name, fill(draw.choice(VALUES[half]), draw)


def secret_samples(half: str, seed: int) -> list[Sample]:  # noqa: C901, PLR0912 - a loop a table
    """Return texts with one secret each: every layout several times."""
    draw = random.Random(f"{half}-secrets-{seed}")
    made: list[Sample] = []

    def add(kind: str, carrier: str, text: str, parts: tuple[str, ...]) -> None:
        made.append(Sample(kind, carrier, _around(draw, text), parts))

    for carrier, layouts in LAYOUTS.items():
        for layout in layouts[half]:
            for kind in ("vendor", "generic", "generic"):
                name, value = _secret(kind, half, draw)
                add(kind, carrier, named(layout, name, value), (value,))
    for layout in BARE[half]:
        for form in VENDORS[half]:
            value = fill(form, draw)
            add("vendor", "bare", layout.replace("{s}", value), (value,))
    for layout in PASSWORD_FILES[half] * 3:
        value = draw_password(draw).translate(dict.fromkeys(map(ord, "#$&*%;,|"), "!"))
        add("generic", "password-file", layout.replace("{s}", value), (value,))
    for form in FRAMEWORKS[half] * 2:
        field = re.findall(r"(?:django-insecure-)?\{[a-zA-Z]\d+\}=*", form)
        values = [fill(slot, draw).replace("'", "!") for slot in field]
        text = form
        for slot, value in zip(field, values, strict=True):
            text = text.replace(slot, value, 1)
        add("framework", "code", text, tuple(values))
    for form in HASHES[half]:
        for layout in HASH_LAYOUTS[half]:
            value = fill(form, draw)
            add("hash", "code", layout.replace("{s}", value), (value,))
    for carrier, split in SPLITS.items():
        for layout, glue in split[half]:
            for kind in ("vendor", "vendor", "generic", "generic"):
                name, value = _secret(kind, half, draw)
                while "pass" in name or len(value) < 20:
                    name, value = _secret(kind, half, draw)
                parts = _cut(value, draw)
                inner = named(glue, name, "")
                text = named(layout, name, "").replace("{p}", inner.join(parts))
                add(kind, carrier, text, parts)
    return made


def _iban(form: str, draw: random.Random) -> str:
    """Draw an account number with its check digits (ISO 13616)."""
    plain = fill(form.replace("{k}", "00"), draw)
    digits = "".join(str(int(char, 36)) for char in plain[4:] + plain[:4])
    plain = f"{plain[:2]}{98 - int(digits) % 97:02}{plain[4:]}"
    return draw.choice((plain, " ".join(plain[at : at + 4] for at in range(0, len(plain), 4))))


def _card(form: str, draw: random.Random) -> str:
    digits = fill(form, draw) if form != "35{n2}" else "3530" + fill("{n11}", draw)
    digits += luhn_digit(digits)
    if len(digits) == 16 and draw.random() < 0.5:
        return draw.choice(" -").join(digits[at : at + 4] for at in range(0, 16, 4))
    return digits


def national_ids() -> dict[str, list[str]]:
    """Return national ids by country."""
    rows = (Path(__file__).parent / "national_ids.tsv").read_text(encoding="utf-8").splitlines()
    return {c: ids[::-1].split("|")[::-1] for c, _tab, ids in (row.partition("\t") for row in rows)}


def personal_samples(half: str, seed: int) -> list[Sample]:  # noqa: C901, PLR0912 - the same
    """Return texts with one piece of personal data each: every layout with every form."""
    draw = random.Random(f"{half}-personal-{seed}")
    made: list[Sample] = []
    layouts = [(c, layout) for c, rows in PERSONAL_LAYOUTS[half].items() for layout in rows]
    names = ("jane.doe", "omar.haddad", "li_wei", "petra77", "max-novak")
    if half != "tuned":
        names = ("a.okafor", "lena.huber", "svensson_k", "tom42", "maria-rossi")

    def add(kind: str, value: str, times: int = 2) -> None:
        for carrier, layout in draw.sample(layouts, min(times, len(layouts))):
            text = _around(draw, named(layout, "x", value))
            made.append(Sample(kind, carrier, text, (value,), personal=True))

    for host in EMAIL_HOSTS[half]:
        for name in names:
            add("email", f"{name}@{host}")
    for form in SPELLED[half]:
        for name in names[:4]:
            d, _dot, t = draw.choice(("acme.io", "brightware.com", "huber.net")).partition(".")
            value = form.replace("{l}", name).replace("{d}", d).replace("{t}", t)
            add("email-spelled", value.replace("{{", "{").replace("}}", "}"), 1)
    for form in PHONES[half]:
        add("phone", fill(form, draw), 4)
    for layout in NAMED_PHONES[half]:
        for form in BARE_PHONES[half]:
            value = fill(form, draw)
            text = _around(draw, named(layout.replace("{n}", "{s}"), "x", value))
            made.append(Sample("phone-named", "beside", text, (value,), personal=True))
    for form in CARDS[half]:
        for _time in range(5):
            add("card", _card(form, draw))
    for form in IBANS[half]:
        for _time in range(3):
            add("iban", _iban(form, draw))
    for _time in range(10):
        area, group, serial = (
            draw.randrange(100, 600),
            draw.randrange(10, 99),
            draw.randrange(1000, 9999),
        )
        add("ssn", f"{area}-{group}-{serial}")
    ids = national_ids()
    for nation in NATIONS[half]:
        for value in draw.sample(ids[nation], 6):
            name = NATION_NAMES.get(nation)
            if name is None:
                add(f"id-{nation}", value, 1)
                continue
            form = draw.choice(
                ("{k}: {s}", "{k} {s}", "{s} ({k})", "her {k} is {s}", "| {k} | {s} |")
            )
            text = _around(draw, form.replace("{k}", name).replace("{s}", value))
            made.append(Sample(f"id-{nation}", "beside", text, (value,), personal=True))
    return made


def decoy_samples(half: str, seed: int, times: int = 4) -> list[Sample]:
    """Return texts that hold nothing to be found: each decoy several times."""
    draw = random.Random(f"{half}-decoys-{seed}")
    return [
        Sample("decoy", form, _around(draw, fill(form, draw)), ())
        for form in DECOYS[half]
        for _time in range(times)
    ]


def left_over(after: str, parts: tuple[str, ...]) -> str:
    """Return the longest piece of a secret that is left in a text, if it says too much of it.

    Half of a secret counts as the secret: of each part that is long no eight characters may stay,
    of a shorter one not the whole.
    """
    for part in parts:
        size = 8 if len(part) >= 16 else len(part)
        for at in range(len(part) - size + 1):
            if part[at : at + size] in after:
                return part[at : at + size]
    return ""
