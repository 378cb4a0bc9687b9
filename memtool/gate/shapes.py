"""Secrets known by their shape: key blocks, web tokens, connection strings, headers, webhooks.

A row is (kind, needles, pattern). The text is searched only where one of the needles is in it.
The group named `secret` is the secret, or the whole match where there is none. Every repeat is
bounded, so the work grows with the length of the text and not faster.
"""

from __future__ import annotations

from memtool.gate import blocks, triggers
from memtool.gate.pattern import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HOOK = r"[A-Za-z0-9_/-]"

ROWS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("jwt", ("eyJ",),
     (r"(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{0,4000}"
     r"\.[A-Za-z0-9_-]{6,4000}(?:\.[A-Za-z0-9_-]{6,4000}){0,2}")),
    ("slack-webhook", ("hooks.slack",),
     rf"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>{HOOK}{{20,200}})"),
    ("discord-webhook", ("/webhooks/",),
     r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(?P<secret>\d{16,20}/[A-Za-z0-9_-]{40,100})"),
    ("teams-webhook", ("webhook.office", "/IncomingWebhook/"),
     r"webhook\.office(?:365)?\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{60,300})"),
    ("zapier-webhook", ("hooks.zapier",),
     r"hooks\.zapier\.com/hooks/catch/(?P<secret>[A-Za-z0-9/]{10,80})"),
    ("telegram-token", (":A",), r"(?<![\d])\d{8,10}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])"),
    ("discord-token", (".",),
     r"(?<![\w.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w-])"),
    ("azure-client-secret", ("Q~",),
     r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{29,34}[A-Za-z0-9_~-]"),
    ("azure-sas", ("sig=",), r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/=_-]{40,120})"),
    ("airtable-token", ("pat",),
     r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![A-Za-z0-9])"),
    ("terraform-token", ("atlasv1",),
     r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{50,80}"),
    ("dynatrace-token", ("dt0",),
     r"(?<![A-Za-z0-9])dt0[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}(?![A-Za-z0-9])"),
    ("asana-token", ("/1",), r"(?<![\w/])[12]/\d{12,19}(?:/\d{12,19})?:[0-9a-f]{32}(?![0-9a-f])"),
    ("mailchimp-token", ("-us",), r"(?<![0-9A-Za-z])[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    ("mailgun-token", ("-",),
     r"(?<![0-9A-Za-z-])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9A-Za-z-])"),
    ("facebook-token", ("|",), r"(?<!\d)\d{15,16}\|[A-Za-z0-9_-]{27}(?![\w-])"),
    ("okta-token", ("SSWS",), r"SSWS\s{1,3}(?P<secret>00[A-Za-z0-9_-]{38,42})"),
    ("yandex-token", ("t1.",), r"(?<![\w.])t1\.[A-Za-z0-9_=-]{8,400}\.[A-Za-z0-9_=-]{60,120}"),
    ("openai-token", ("T3BlbkFJ",),
     r"(?<![\w-])sk-[A-Za-z0-9_-]{20,110}T3BlbkFJ[A-Za-z0-9_-]{20,110}"),
    ("salesforce-token", ("00D",), r"(?<!\w)00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{60,130}"),
    ("authorization", ("uthorization", "UTHORIZATION"),
     (r"(?:[Aa]uthorization|AUTHORIZATION)[\"'`*]{0,3}\s{0,3}[:=]\s{0,3}[\"'`]{0,3}[Bb]asic\s{1,3}"
     r"(?P<secret>[A-Za-z0-9+/_-]{6,400}={0,2})")),
    ("authorization", ("earer ", "EARER "),
     r"\b(?:[Bb]earer|BEARER)\s{1,3}[\"'`]{0,2}(?P<secret>[A-Za-z0-9._~+/-]{12,2000}={0,2})"),
    ("authorization", ("uthorization", "UTHORIZATION"),
     (r"(?:[Aa]uthorization|AUTHORIZATION)[\"'`*]{0,3}\s{0,3}[:=]\s{0,3}[\"'`]{0,3}"
     r"(?:[A-Za-z][\w-]{1,20}\s{1,3}){0,2}"
     r"(?:[A-Za-z-]{1,20}=[\"'])?(?P<secret>(?!https?:)[A-Za-z0-9._~+/:-]{12,2000}={0,2})")),
    ("session-cookie", ("ookie",),
     (r"(?:Set-)?[Cc]ookie:\s{0,3}(?:[\w.-]{1,40}=[^;\s\0]{0,80};\s{0,2}){0,6}"
     r"[\w.-]{0,20}(?:sess|sid|auth|token|SESS|SID|remember|jwt)[\w.-]{0,20}="
     r"(?P<secret>[A-Za-z0-9._%+/=:|-]{12,2000})")),
    ("putty-key", ("PuTTY-User-Key-File",),
     (r"PuTTY-User-Key-File-\d(?:[^\n\0]{0,400}\n){1,60}?Private-Lines:[^\n]{0,20}\n"
     r"(?P<secret>(?:[ \t>]{0,12}[A-Za-z0-9+/=]{4,80}\r?\n?){1,200})")),
    ("wireguard-key", ("PrivateKey", "PresharedKey"),
     r"(?:PrivateKey|PresharedKey)\s{0,3}=\s{0,3}(?P<secret>[A-Za-z0-9+/]{42,44}=?)"),
    ("password", ("mysql", "mariadb"),
     (r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mysqlimport)\b[^\n\0|;]{0,80}?"
     r"\s-p(?P<secret>[^\s\0\"'`;|]{4,80})")),
    ("password", (" -p", " -a", " -w", " -P"),
     (r"\b(?:sshpass|redis-cli|mosquitto_\w{3}|mongo(?:sh|dump)?|ldap\w{3,8}|docker login|"
     r"podman login|"
     r"helm|smbclient|7z|unzip|zip|openssl|az login|oc login|sqlcmd|psql|cqlsh|influx)\b"
     r"[^\n\0|;]{0,80}?"
     r"\s-[pawP][ =]?(?P<quote>[\"']?)(?P<secret>[^\s\0\"'`;|-][^\s\0\"'`;|]{5,80})")),
    ("password", ("-u", "--user", "--proxy-user"),
     r"(?:\s-u[ ]?|--(?:proxy-)?user[ =])[\"']?[\w.@-]{1,40}:(?P<secret>[^\s\0\"'`]{4,100})"),
    ("password", ("-U", "--user="),
     r"\s(?:-U|--user=)[ ]?[\"']?[\w.@\\-]{1,40}%(?P<secret>[^\s\0\"'`]{6,100})"),
    ("password", ("pass:",), r"\bpass:(?P<secret>[^\s\0\"'`]{5,80})"),
)  # fmt: skip


MOLDS: dict[str, tuple[bytes, bytes]] = {
    "-": (triggers.HEX, b"0" * 32 + b"-00000000-00000000"),
    ".": (triggers.WORD, b"a" * 24 + b".aaaaaa." + b"a" * 27),
    "|": (triggers.NUMBER, b"0" * 15 + b"|"),
    "/1": (triggers.NUMBER, b"/" + b"0" * 12),
    "-us": (triggers.HEX, b"0" * 32 + b"-us"),
    "pat": (triggers.HEX, b"." + b"0" * 64),
}
"""For needles that stand in any text: classes of characters, and what such a secret looks like
where each stands as its class."""

_PATTERNS = tuple((kind, needles, Pattern(pattern)) for kind, needles, pattern in ROWS)


def may_hold(text: str, _lower: str = "") -> bool:
    """Say whether a needle is in a text, and the mold that belongs to it."""
    return blocks.BEGIN in text or any(True for _row in _worth(text))


def _worth(text: str) -> Iterator[tuple[str, Pattern]]:
    """Yield the kinds that a text may hold, with their patterns."""
    data = text.encode(errors="surrogatepass")
    is_strange = triggers.has_foreign_digits(text)
    for kind, needles, pattern in _PATTERNS:
        for needle in needles:  # a generator would cost more than the search
            if needle in text:
                break
        else:
            continue
        classes, mold = MOLDS.get(needle, (None, b""))
        if is_strange or mold in data.translate(classes):
            yield kind, pattern


def find(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every shape."""
    for kind, pattern in _worth(text):
        for match in pattern.finditer(text):
            group = "secret" if "secret" in match.re.groupindex else 0
            secret = match[group].rstrip("." if kind != "putty-key" else "\r\n")
            if _is_real(kind, secret):
                start = match.start(group)
                yield kind, start, start + len(secret)
    for label, start, end in blocks.blocks(text):
        if label == blocks.PRIVATE_KEY:
            yield label, start, end


WORDED = frozenset({"authorization", "session-cookie", "password"})
"""Shapes whose secret could be a plain word; the others say enough by their form."""


def _is_real(kind: str, secret: str) -> bool:
    from memtool.gate.chance import is_filler, is_wordlike  # most texts hold no shape
    from memtool.gate.values import is_typed

    if is_filler(secret):
        return False
    if kind not in WORDED:
        return True
    if kind == "password":
        return is_typed(secret, 4, sure=True) and not secret.isdigit()
    has_digit = any(char.isdigit() for char in secret)
    return (has_digit or (not secret.islower() and len(secret) > 15)) and not is_wordlike(secret)
