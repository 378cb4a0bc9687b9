"""A second labelled corpus: values of a *kind* in a *carrier*, and decoys that look like them.

It asks whether detectors know secrets and people, or only the sentences they were written for.
Vendors, layouts and countries of the half `judged` stand nowhere in the half `tuned`, the only one
that detectors may be tuned on. The same seed gives the same notes. No value stands here: formats
are those of `corpus.draw_value`, national ids are spelled backwards in `national_ids.tsv` (drawn at
random by the ranges of each country, and held for right by an independent library).
"""

from __future__ import annotations

import random
import re
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


HALVES = ("tuned", "judged")

VENDORS = {
    "tuned": (
        "ghp_{a36}", "glpat-{d20}", "AKIA{u16}", "xoxb-{n12}-{n12}-{a24}", "sk_live_{a24}",
        "sk-ant-api03-{d93}AA", "npm_{a36}", "SG.{d22}.{d43}", "dop_v1_{h64}", "hf_{a34}",
        "shpat_{h32}", "lin_api_{a40}", "PMAK-{h24}-{h34}", "GOCSPX-{d28}", "AIza{d35}",
        "acme_sk_{h40}", "qrx_live_{a32}", "zed-api-{h32}", "mq_secret_{l40}", "vnd_pat_{a44}",
    ),
    "judged": (
        "A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}", "hcaik_{l58}", "APP_USR-{n16}-{n6}-{h32}-{n9}",
        "ck_{h40}", "cs_{h40}", "xaat-{g}", "pina_{l32}{a32}", "tr_prod_{a20}", "BSA{d27}",
        "signkey-prod-{h64}", "cal_live_{h32}", "sec-c-{b48}", "KGAT_{h32}", "ory_at_{d43}",
        "CW-SECRET-{a40}", "sm_pat_{a24}", "ddp_{a36}", "hbp_{a30}", "Mid-server-{d24}",
        "persona_production_{g}", "bulk_live_{h48}", "quark.sk.{a40}", "fnb-key-{l36}",
        "oxide_token_{h40}", "trk_adm_{a30}", "GLW{u30}", "wf-prod-{a42}", "nx_{a40}",
    ),
}  # fmt: skip
"""Vendors' formats; of each half some belong to nobody. `judged` ones never get a row for that."""

KEYS = {
    "tuned": (
        "api key", "secret key", "auth token", "client secret", "access token", "signing secret",
        "webhook secret", "db password", "smtp password", "admin password",
    ),
    "judged": (
        "api token", "service key", "encryption key", "private token", "refresh token",
        "app secret", "session secret", "redis password", "root password", "ftp passwd",
        "ldap bind password", "consumer secret",
    ),
}  # fmt: skip
VALUES = {
    "tuned": ("{h32}", "{a32}", "{h64}", "{a40}", "{l36}", "{d43}", "{a20}", "{g}"),
    "judged": ("{h40}", "{a24}", "{l32}", "{d32}", "{b44}=", "{a18}", "{h48}", "{a64}"),
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
    "judged": (
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
}
HASHES = {
    "tuned": (
        "$2b$12${c53}", "$argon2id$v=19$m=65536,t=3,p=4${b22}${b43}", "$6${c16}${c86}",
        "pbkdf2_sha256$600000${a22}${b43}=", "{SSHA}{b38}==", "$1${c8}${c22}",
    ),
    "judged": (
        "$2y$10${c53}", "$2a$08${c53}", "$argon2i$v=19$m=4096,t=3,p=1${b22}${b43}",
        "$5$rounds=535000${c16}${c43}", "$y$j9T${c22}${c43}", "$apr1${c8}${c22}",
        "scrypt:32768:8:1${a16}${h128}", "pbkdf2:sha256:260000${a16}${h64}", "$P$B{c30}",
        "SCRAM-SHA-256$4096:{b22}==${b43}=:{b43}=", "*{H40}", "{PBKDF2}10000${b22}${b43}",
        "argon2$argon2id$v=19$m=102400,t=2,p=8${b22}${b43}", "$S$D{c52}",
    ),
}  # fmt: skip
HASH_LAYOUTS = {
    "tuned": ("deploy:{s}", "hash: {s}", "| ops | {s} |", "password_hash = '{s}'"),
    "judged": (
        "root:{s}:19500:0:99999:7:::", "INSERT INTO users VALUES (1, 'bob', '{s}');",
        "the stored hash is {s}.", '"passwordHash": "{s}"', "id,login,hash\n1,bob,{s}",
    ),
}  # fmt: skip

LAYOUTS: dict[str, dict[str, tuple[str, ...]]] = {
    "prose": {
        "tuned": ("The {words} is {s}, do not share.", "our {words}: `{s}`"),
        "judged": (
            "We set the {words} to {s} last week.", "{words} is now **{s}** everywhere",
            "For staging use {s} as {words}.", "he mailed me the {words} ({s})",
        ),
    },
    "yaml": {
        "tuned": ("app:\n  {snake}: {s}\n  port: 80", "{camel}: '{s}'"),
        "judged": (
            "- name: {upper}\n  value: \"{s}\"", "{kebab}: \"{s}\"  # rotate",
            "{snake}: !!str {s}", "env: {{ {upper}: {s} }}", "{snake}: &k {s}",
        ),
    },
    "toml": {
        "tuned": ("[auth]\n{snake} = \"{s}\"",),
        "judged": ("[a.b]\n{kebab} = '{s}'", 'a = {{ {snake} = "{s}", n = 1 }}'),
    },
    "env": {
        "tuned": ("{upper}={s}", 'export {upper}="{s}"'),
        "judged": ("ACME_{upper}='{s}'\nDEBUG=1", "set {upper}={s}", "X=1\n{upper} = {s}"),
    },
    "csv": {
        "tuned": ("name,{snake}\nci,{s}\n", "id;{words};note\n1;{s};x"),
        "judged": (
            '"user","{words}"\n"ops","{s}"', "host\t{snake}\ndb1\t{s}\n",
            "service,{upper},owner\nmail,{s},bob\n",
        ),
    },
    "table": {
        "tuned": ("| name | {words} |\n|---|---|\n| ci | {s} |",),
        "judged": (
            "| {words} | `{s}` |", "|env|{words}|\n|:--|:-:|\n|prod|{s}|\n",
            "| {snake} | {s} | prod |",
            "+------+----------+\n| {words} | {s} |\n+------+----------+",
        ),
    },
    "json": {
        "tuned": ('{{"{camel}": "{s}"}}', '{{\n  "{snake}":"{s}",\n  "a": 1\n}}'),
        "judged": (
            '"[{{\\"{camel}\\": \\"{s}\\"}}]"', '{{"name": "{upper}", "value": "{s}"}}',
            '{{"key": "{snake}", "value": "{s}"}}',
        ),
    },
    "code": {
        "tuned": (
            '{snake} = "{s}"', "const {camel} = '{s}';", 'String {camel} = "{s}";',
            "define('{upper}', '{s}');", "{camel} := \"{s}\"",
        ),
        "judged": (
            'System.setProperty("app.{camel}", "{s}");', "ENV['{upper}'] = '{s}'",
            'public const string {pascal} = "{s}";', 'config["{camel}"] = "{s}"',
            'let {snake}: &str = "{s}";', "client({camel}='{s}')", "{snake}: '{s}',",
            "@{camel} = %q({s})", "#define {upper} \"{s}\"", "val {camel}: String = \"{s}\"",
            '.{camel}("{s}")', "my ${snake} = '{s}';", "{snake} <- \"{s}\"",
        ),
    },
    "log": {
        "tuned": ("2026-02-01T10:00:00Z INFO {snake}={s} user=bob",),
        "judged": (
            "[2026-03-01 10:00:00] DEBUG auth: sent {words}: {s} (200)",
            'level=debug msg="login" {camel}="{s}"', "POST /v1?{snake}={s}&page=2 HTTP/1.1",
        ),
    },
    "shell": {
        "tuned": ("run --{kebab} {s} --wait", "{upper}={s} ./run"),
        "judged": (
            "acme login --{kebab}='{s}'", "docker run -e {upper}={s} acme/app",
            "kubectl create secret generic x --from-literal={kebab}={s}",
            "helm upgrade x . --set auth.{camel}={s}",
        ),
    },
}  # fmt: skip
"""Layouts of a value with its name, by carrier. A name is spelled as the carrier spells names."""

PASSWORD_FILES = {
    "tuned": ("db1.acme.io:5432:app:ops:{s}", "machine ci.acme.io login bot password {s}"),
    "judged": (
        "*:*:*:postgres:{s}", "10.0.0.7:6432:*:svc-app:{s}", "db-2:5433:shop:reader:{s}\n",
        "machine git.acme.io\n  login bot\n  password {s}", "default login anon password {s}",
        "machine api.acme.io\nlogin ops\npassword {s}\nmachine x.acme.io",
    ),
}  # fmt: skip
"""Lines of .pgpass and .netrc."""

BARE = {
    "tuned": ("Use {s} for that.", "token: {s}", "x = \"{s}\"", "| ci | {s} |", "- {s}\n"),
    "judged": (
        "It worked with {s}.", "<li>{s}</li>", "value,{s},1", "{s}", "(see {s})",
        "curl -H 'X-Auth: {s}' https://api.acme.io", "'{s}',", "log: sent {s} ok",
    ),
}  # fmt: skip
"""Layouts without a name, for what gives itself away."""


def _cut(value: str, draw: random.Random, pieces: int = 0) -> tuple[str, ...]:
    """Cut a value into two or three parts of five characters or more."""
    count = pieces or draw.choice((2, 2, 3))
    while len(value) < count * 5:
        count -= 1
    places = sorted(draw.sample(range(1, len(value) // 5), count - 1))
    cuts = [0, *(place * 5 for place in places), len(value)]
    return tuple(value[a:b] for a, b in zip(cuts, cuts[1:], strict=False))


SPLITS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "quoted-printable": {
        "tuned": (("{snake}=3D{p}\nbye=20now", "=\n"),),
        "judged": (("Subject: x\n\nthe {words} is {p}\n=C3=A9", "=\n"), ("{upper}=3D{p}", "=\r\n")),
    },
    "folded": {
        "tuned": (("{snake}: >-\n  {p}\nport: 1", "\n  "), ("X-{kebab}: {p}", "\n ")),
        "judged": (
            ("{camel}: >\n    {p}\n", "\n    "), ("{snake}: \"{p}\"", "\n  "),
            ("{kebab}: |\n  {p}\n\nnext: 1", "\n  "), ("Set-{kebab}: {p}\r\nDate: x", "\r\n\t"),
        ),
    },
    "wrapped": {
        "tuned": (("# {words}: {p}", "\n# "), ("the {words} is {p}", "\n")),
        "judged": (
            ("// {words} = {p}", "\n// "), ("> {words}: {p}", "\n> "), ("{words}:\n{p}", "\n"),
            (" * {words}: {p}\n */", "\n * "), ("-- {words} {s} was: {p}", "\n-- "),
        ),
    },
    "backslash": {
        "tuned": (("{upper}={p}", "\\\n"), ('{snake} = "{p}"', "\\\n")),
        "judged": (("export {upper}={p}", "\\\n    "), ("set {kebab} {p}", "\\\r\n")),
    },
    "concatenated": {
        "tuned": (('{snake} = "{p}"', '" + "'), ("{camel} = '{p}'", "'\n  '")),
        "judged": (
            ('${snake} = "{p}";', '" . "'), ("{snake} = ('{p}')", "'\n    '"),
            ('{camel} := "{p}"', '" +\n\t"'), ("{upper} = \"{p}\"", "\" & _\n  \""),
            ("local {camel} = '{p}'", "' .. '"), ('{snake} <- paste0("{p}")', '", "'),
            ("const {camel} = ['{p}'].join('')", "', '"), ('{snake}: "{p}"', '" \\\n  "'),
            ("{snake} = '{p}'", "' || '"), ("{camel} = '{p}'", "'\n{camel} += '"),
        ),
    },
    "emphasis": {
        "tuned": (("{words}: {p}", "**"), ("{snake}={p}", "*")),
        "judged": (
            ("the {words} is {p}", "~~"), ("{words}: *{p}*", "*"), ("{words}: <b>{p}</b>", "</b>"),
            ("{words}: {p}", "<wbr>"), ("{words}: `{p}`", "``"), ("{snake}: {p}", "***"),
        ),
    },
    "zero-width": {
        "tuned": (("{words}: {p}", "\u200b"), ("{snake}={p}", "\xad")),
        "judged": (
            ("{upper}={p}", "\u200c"), ("the {words} is {p}", "\u2060"), ("{words}: {p}", "\ufeff"),
            ("{camel}: '{p}'", "\u200d"), ("({words}: {p})", "&shy;"), ("{words}: {p}", "\u180e"),
            ("{words}: {p}", "&#8203;"),
        ),
    },
    "cells": {
        "tuned": (("| {words} | {p} |", " |\n| | "),),
        "judged": (
            ("| a | {words} |\n|---|---|\n| x | {p} |", " |\n|   | "),
            ("| {snake} | {p} | x |", " | |\n|  | "),
            ("| {words} |\n|---|\n| {p} |", " |\n| "),
        ),
    },
}  # fmt: skip
"""Layouts that cut a value, with what stands between its parts."""

EMAIL_HOSTS = {"tuned": ("acme.io", "bigcorp.co.uk"), "judged": ("gmail.com", "uni-jena.de", "x.dev")}
SPELLED = {
    "tuned": ("{l} at {d} dot {t}", "{l} [at] {d} [dot] {t}", "{l}(at){d}.{t}"),
    "judged": (
        "{l} (at) {d} (dot) {t}", "{l} AT {d} DOT {t}", "{l}[at]{d}.{t}", "{l} <at> {d} <dot> {t}",
        "{l}&#64;{d}.{t}", "{l}%40{d}.{t}", "{l} {{at}} {d} {{dot}} {t}", "{l} at {d}.{t}",
        "{l}\uff20{d}.{t}", "{l} _at_ {d} _dot_ {t}", "{l} @ {d} . {t}",
    ),
}  # fmt: skip
PHONES = {
    "tuned": (
        "+49 151 {n8}", "(415) 55{n1}-{n4}", "+44 20 7{n3} {n4}", "030 2{n7}", "01 42 {n2} {n2} {n2}",
        "tel:+49-30-2{n7}", "0151-2{n7}", "+33 (0)6 {n2} {n2} {n2} {n2}",
    ),
    "judged": (
        "+1-650-55{n1}-{n4}", "650.55{n1}.{n4}", "+8190{n8}", "+48 60{n1} {n3} {n3}",
        "0049 30 2{n7}", "020 7946 1{n3}", "07700 9{n2} {n3}", "06 12 {n2} {n2} {n2}",
        "0171/2{n6}", "tel:+1-650-55{n1}-{n4}", "tel:06{n8}", "(030) 2{n3} {n4}", "03-5{n3}-{n4}",
        "090-1{n3}-{n4}", "(02) 9{n3} {n4}", "0412 3{n2} {n3}", "(11) 9{n4}-{n4}", "044 668 {n2} {n2}",
        "+39 06 6{n3} {n4}", "+55 11 9{n4}-{n4}", "+91 98{n3} {n5}", "+31 6 {n8}", "010-2{n3}-{n4}",
        "02 1234 {n4}", "06.12.{n2}.{n2}.{n2}", "+1 (650) 55{n1} {n4}", "08-12{n1} {n3} {n2}",
    ),
}  # fmt: skip
NAMED_PHONES = {
    "tuned": ("phone: {n}", "{n} (mobile)", "tel {n}"),
    "judged": (
        "call me: {n}", "{n} is my cell", "fax {n}", "phone,{n}", "mobile={n}", "{n} (Telefon)",
        '"phoneNumber": "{n}"', "Handy: {n}", "WhatsApp {n}", "{n} - home phone", "| tel | {n} |",
        "numéro de téléphone : {n}", "móvil {n}", "phone_number,{n},x",
    ),
}  # fmt: skip
BARE_PHONES = {
    "tuned": ("415555{n4}", "0151{n8}", "6{n8}"),
    "judged": ("650253{n4}", "07700{n6}", "612345{n3}", "06{n8}", "4930{n8}", "98{n8}", "1650253{n4}",
               "601 {n3} {n3}", "20 12 {n2} {n2}", "91 234 {n2} {n2}"),
}  # fmt: skip
CARDS = {"tuned": ("4{n14}", "52{n13}"), "judged": ("37{n12}", "6011{n11}", "4{n14}", "2221{n11}", "35{n2}")}
IBANS = {
    "tuned": ("DE{k}{n18}", "FR{k}{n10}{u11}{n2}"),
    "judged": ("GB{k}NWBK{n14}", "NL{k}INGB{n10}", "ES{k}{n20}", "IT{k}{u1}{n22}", "CH{k}{n17}",
               "NO{k}{n11}", "PL{k}{n24}", "BE{k}{n12}", "AT{k}{n16}", "SE{k}{n20}"),
}  # fmt: skip
NATIONS = {
    "tuned": ("fr", "es", "de", "it", "pl", "ca", "br", "fi", "in", "ch", "no", "cl", "mx"),
    "judged": (
        "nl", "be", "se", "dk", "cz", "ro", "pt", "tr", "za", "kr", "cn", "es-nie", "au", "ee", "gr",
        "ar", "bg", "hr", "ie", "th", "my", "nhs",
    ),
}  # fmt: skip
NATION_NAMES = {
    "de": "Steuer-ID", "pl": "PESEL", "ca": "SIN", "in": "Aadhaar", "nl": "BSN", "ro": "CNP",
    "pt": "NIF", "tr": "T.C. Kimlik No", "za": "SA ID number", "au": "TFN", "ee": "isikukood",
    "gr": "AMKA", "bg": "EGN", "hr": "OIB", "ie": "PPS number", "nhs": "NHS number",
    "no": "personnummer", "th": "Thai ID",
}  # fmt: skip
"""Names of ids that are bare digits: nobody can tell these from an order number without."""
PERSONAL_LAYOUTS = {
    "tuned": {
        "prose": ("Ask {s} about it.", "reported by ({s})"), "yaml": ("owner: {s}",),
        "csv": ("1,bob,{s},x",), "json": ('{{"contact": "{s}"}}',), "table": ("| Bob | {s} |",),
    },
    "judged": {
        "prose": ("{s} reported it.", "The form had {s} in it.", "e.g. {s};", "Reached him ({s}) today"),
        "yaml": ("- {s}", "user: '{s}'"), "csv": ("{s},7,2026-01-01", "a;{s};b", "x\t{s}\ty",
                                                  '1,"{s}",12/29'),
        "json": ('["{s}"]', '{{"a": 1, "b": "{s}"}}'), "table": ("|{s}|x|", "| 7 | `{s}` |"),
        "log": ("user={s} status=200", "[warn] dropped {s}"), "code": ('x = "{s}"', "f('{s}')"),
        "emphasis": ("**{s}**", "_{s}_"),
    },
}  # fmt: skip

DECOYS = {
    "tuned": (
        "customer cus_{a14} paid", "pi_{a24}", "evt_1{a23}", "vpc-{h17} in eu", "i-0{h16}",
        "thread_{a24}", "msg_{a24}", "sha256:{h64}", "/nix/store/{l32}-openssl-3.0.13", "Qm{z44}",
        "|1|{b27}=|{b27}= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43}", "x = weights@inputs.T",
        "data:image/png;base64,iVBORw0KGgo{b90}", "-> X25519 {b43}", "JANE.DOE@COMPANY.COM",
        "first.last@yourcompany.com", "api_key = YOUR_API_KEY", "token: XXXXXXXXXXXXXXXX",
        "AC{h32} is the account", "order 20260222{n4}", "commit {h40}", "@app.route('/x')",
        "+1 (XXX) XXX-XXXX", "the cache is at 10.0.{n2}.{n2}:5432", "price 1.234.{n3},00",
    ),
    "judged": (
        "sub_1{a23}", "price_1{a23}", "req_{a14} failed", "org-{a24}", "asst_{a24}", "run_{a24}",
        "acct_1{a15}", "prod_{a14}", "ami-{h17}", "subnet-{h17}", "AROA{u17}", "AIDA{u17}", "sg-{h17}",
        "PR_kwDO{a16}", "SM{h32} delivered", "proj_{a24}", "file-{a24}", "prj_{a24}", "dpl_{a28}",
        "gid://shopify/Order/{n13}", "resp_{h48}", "chatcmpl-{a29}", "toolu_01{a22}", "call_{a24}",
        "bafybeig{l51}", "ipfs://Qm{z44}/a", "blake3:{h64}", "sha1-{b27}=", "sha512-{b86}==",
        "/gnu/store/{l32}-gcc-12", "~/.cargo/registry/src/index.crates.io-{h16}/serde-1.0.{n2}",
        ".yarn/cache/lodash-npm-4.17.21-{h10}-{h64}.zip", "/nix/store/{l32}-glibc-2.38/lib/libc.so",
        ".pnpm/react-dom@18.2.0_react@18.2.0/node_modules", "conda/pkgs/numpy-1.26-py311h{h7}_0",
        "~/.npm/_cacache/content-v2/sha512/{h2}/{h2}/{h124}", "bazel-out/k8-fastbuild/{h32}",
        "|1|{b27}=|{b27}= ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAI{b100}=",
        "-> ssh-ed25519 {b6} {b43}\n{b43}\n--- {b43}", "age1{l58}", "-> scrypt {b22} 18\n{b43}",
        "data:font/woff2;base64,d09GMgABAAAA{b90}", "url(data:image/webp;base64,UklGR{b80})",
        "data:application/wasm;base64,AGFzbQ{b90}", "src='data:audio/ogg;base64,T2dnUw{b80}'",
        "return q@k.transpose(1, 2)", "y = x@self.weight.data", "loss = model@batch.view(-1)",
        "class Foo@Bar.baz", "import a from '@scope/pkg.sub'", "pip install x@git+https://a.b/c",
        "user@host.domain", "USER@EXAMPLE.COM", "NAME@MAIL.DOMAIN.COM", "you@company.com",
        "ssh deploy@web-1.acme.io", "scp a.txt ops@db.acme.io:/tmp", "ADMIN@CORP.LOCAL",
        "look at the dot net runtime", "we met at acme dot plots", "meet at noon.",
        "password = <PASSWORD>", "SECRET_KEY=CHANGE_ME_PLEASE", "token: <insert token here>",
        "apiKey: 'sk_live_XXXXXXXXXXXXXXXXXXXXXXXX'", "password: PASSWORD", "secret: ${SECRET}",
        "API_TOKEN=__API_TOKEN__", "auth_token: '{{ lookup(\"env\", \"TOKEN\") }}'",
        "db_password = var.db_password", "token = get_token(user_id)", "passwd: ********",
        "AKIAIOSFODNN7EXAMPLE", "INVALID_AUTH_TOKEN_PROVIDED", "HTTP_PROXY_AUTHENTICATION_REQUIRED",
        "$2b$12$...", "$argon2id$ hashes", "algorithm: pbkdf2:sha256", "version 20.12.2024",
        "2024 01 02 03 04 05", "1 234 567 890", "ids 100 200 300 400", "range 0100-0200-0300",
        "serial 0012 3456 7890", "part no. 12-345-678", "ISBN 978-0-306-40615-7", "EAN 4006381333931",
        "DE89 is a road", "RFC 2119 3339 8259", "x: 0000000000000000", "5555 4444 3333 2222",
        "tel: n/a", "phone: <phone>", "call 3 times", "mobile first", "fax 0", "port 8080 8443 9090",
        "timestamp 17{n8}", "17{n11}", "at 2026-02-22 10:11:12.{n6}", "lat 48.{n6}, lon 11.{n6}",
        "postgres://user:password@localhost:5432/db", "host:5432:db:user:<password>",
        "machine x login y password <token>", "uuid {g}", "trace {h32}", "etag W/\"{h32}\"",
        "1e-{n2} and 0x{h16}", "rgb(12 34 56 78 90)", "12345678-1234-1234-1234-123456789012",
        "line one\nline two\nAbstractFactory\nServiceProvider", "see\nsrc/app.py\nsrc/b2.py",
        "*foo*bar*baz*", "\"a\" + \"b\" + suffix", "cat a.txt \\\n  b2.txt \\\n  c3.txt",
        "| a1 | b2 |\n|----|----|\n| c3 | d4 |", "{h40}\n{h40}\n{h40}", "{h64}  a.tar.gz\n{h64}  b.tar.gz",
        "-----BEGIN CERTIFICATE-----\n{b64}\n{b64}\n{b30}==\n-----END CERTIFICATE-----",
        "token:\n  type: bearer\n  ttl: 3600s", "password:\n- min: 12\n- max: 64", "a,b,c\n1,2,3\n4,5,6",
        "user,token_count\nbob,4096", "key,value\nretries,3", "login,commits\nbob,{h40}",
    ),
}  # fmt: skip
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


def secret_samples(half: str, seed: int) -> list[Sample]:
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
        values = [fill(one, draw).replace("'", "!") for one in field]
        text = form
        for one, value in zip(field, values, strict=True):
            text = text.replace(one, value, 1)
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


def personal_samples(half: str, seed: int) -> list[Sample]:
    """Return texts with one piece of personal data each: every layout with every form."""
    draw = random.Random(f"{half}-personal-{seed}")
    made: list[Sample] = []
    layouts = [(c, one) for c, rows in PERSONAL_LAYOUTS[half].items() for one in rows]
    names = ("jane.doe", "omar.haddad", "li_wei", "petra77", "max-novak")
    if half == "judged":
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
        area, group, serial = draw.randrange(100, 600), draw.randrange(10, 99), draw.randrange(1000, 9999)
        add("ssn", f"{area}-{group}-{serial}")
    ids = national_ids()
    for nation in NATIONS[half]:
        for value in draw.sample(ids[nation], 6):
            name = NATION_NAMES.get(nation)
            if name is None:
                add(f"id-{nation}", value, 1)
                continue
            form = draw.choice(("{k}: {s}", "{k} {s}", "{s} ({k})", "her {k} is {s}", "| {k} | {s} |"))
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


