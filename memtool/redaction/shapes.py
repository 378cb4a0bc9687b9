"""Secrets known by their shape: key blocks, web tokens, headers, webhooks, passwords of addresses.

A row is (kind, needles, pattern). The text is searched only where one of the needles is in it.
The group named `secret` is the secret, or the whole match where there is none. Every repeat is
bounded, so the work grows with the length of the text and not faster.
"""

from __future__ import annotations

from memtool.redaction.entropy import (
    PLACEHOLDER_WORDS,
    PRIVATE_KEY,
    Pattern,
    find_key_blocks,
    is_dense,
    is_filler,
    is_hex_or_uuid,
    is_typed,
    is_wordlike,
    looks_like_password,
)
from memtool.redaction.words import read_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HOOK = r"[A-Za-z0-9_/-]"

ROWS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "jwt",
        ("eyJ",),
        (
            r"(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{0,4000}"
            r"\.[A-Za-z0-9_-]{6,4000}(?:\.[A-Za-z0-9_-]{6,4000}){0,2}"
        ),
    ),
    (
        "slack-webhook",
        ("hooks.slack",),
        rf"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>{HOOK}{{20,200}})",
    ),
    (
        "discord-webhook",
        ("/webhooks/",),
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(?P<secret>\d{16,20}/[A-Za-z0-9_-]{40,100})",
    ),
    (
        "teams-webhook",
        ("webhook.office", "/IncomingWebhook/"),
        r"webhook\.office(?:365)?\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{60,300})",
    ),
    (
        "zapier-webhook",
        ("hooks.zapier",),
        r"hooks\.zapier\.com/hooks/catch/(?P<secret>[A-Za-z0-9/]{10,80})",
    ),
    (
        "webhook",
        ("/hook", "/with/key/", "hook.eu", "hook.us", "/robot/send?", "/webhook/send?"),
        (
            r"(?:/with/key/|\bhook\.[a-z]{2}\d\.make\.com/|/robot/send\?access_token=|/webhook/send\?key="
            r"|/bot/v2/hook/|https?://[^\s/\0]{3,80}/hooks/)(?P<secret>[A-Za-z0-9_-]{20,80})(?![\w-])"
        ),
    ),
    (
        "braintree-token",
        ("access_token$",),
        r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}(?![0-9a-f])",
    ),
    (
        "newrelic-token",
        ("NRAL",),
        r"(?<![A-Za-z0-9])(?:[a-z]{2}\d\dxx)?[0-9a-f]{30,40}NRAL(?![A-Za-z0-9])",
    ),
    ("telegram-token", (":A",), r"(?<![\d])\d{8,10}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])"),
    (
        "discord-token",
        (".",),
        r"[MNO](?<![\w.-][MNO])[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w-])",
    ),
    (
        "azure-client-secret",
        ("Q~",),
        r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{29,34}[A-Za-z0-9_~-]",
    ),
    (
        "signed-url",
        ("ignature=",),
        r"[?&](?:X-(?:Goog|Amz|Oss)-)?Signature=(?P<secret>[A-Za-z0-9%+/=~_-]{32,1000})",
    ),
    (
        "oauth-code",
        ("code=",),
        r"(?:callback|oauth|redirect|signin|login)[^\s\0]{0,120}[?&]code=(?P<secret>[A-Za-z0-9._~/%-]{20,400})",
    ),
    (
        "rpc-key",
        (".infura.io", ".alchemy", ".quiknode.pro", ".ankr.com", ".getblock.io", ".blastapi.io"),
        (
            r"\.(?:infura\.io|alchemy(?:api)?\.(?:com|io)|quiknode\.pro|ankr\.com|getblock\.io"
            r"|blastapi\.io)/(?:[\w-]{1,20}/){0,3}(?P<secret>[A-Za-z0-9_-]{24,64})(?![\w-])"
        ),
    ),
    (
        "mnemonic",
        ("nemonic", "NEMONIC", "phrase", "PHRASE", "eed words", "allet"),
        (
            r"(?i:mnemonic|(?:seed|recovery|secret|backup|wallet)[ _-]?(?:phrase|words))"
            r"[\w ]{0,20}[\"'`]{0,1}\s{0,3}(?:[:=]|is)\s{0,3}[\"'`]{0,3}"
            r"(?P<secret>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23})(?![ ,]{0,2}[\w'])"
        ),
    ),
    (
        "totp-secret",
        ("2FA", "2fa", "TOTP", "totp", "OTP", "MFA", "uthenticator"),
        (
            r"(?:2FA|2fa|T?OTP|totp|MFA|[Aa]uthenticator)[^\n\0]{0,24}?(?i:secret|seed|key|setup|token)"
            r"\w{0,8}[^\n\w]{1,6}(?:is\s)?[\"'`]?"
            r"(?P<secret>(?:[A-Za-z2-7]{4}[ -]){3,15}[A-Za-z2-7]{2,4}(?![\w-])"
            r"|[A-Z2-7]{16,64}(?!\w))"
        ),
    ),
    (
        "recovery-code",
        ("codes",),
        (
            r"(?i:backup|recovery|scratch|rescue|emergency)[ _-]?codes\b[^\n\0:]{0,40}[:\n]"
            r"(?P<secret>(?:[\s,;*>\d.)-]{0,8}?\b(?=[A-Za-z-]{0,16}\d)[A-Za-z0-9]{4,10}"
            r"(?:-[A-Za-z0-9]{4,10}){0,2}\b){2,20})"
        ),
    ),
    ("azure-sas", ("sig=",), r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/=_-]{40,120})"),
    (
        "airtable-token",
        ("pat",),
        r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![A-Za-z0-9])",
    ),
    (
        "terraform-token",
        ("atlasv1",),
        r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{50,80}",
    ),
    (
        "dynatrace-token",
        ("dt0",),
        r"(?<![A-Za-z0-9])dt0[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}(?![A-Za-z0-9])",
    ),
    (
        "asana-token",
        ("/1",),
        r"[12](?<![\w/][12])/\d{12,19}(?:/\d{12,19})?:[0-9a-f]{32}(?![0-9a-f])",
    ),
    ("mailchimp-token", ("-us",), r"(?<![0-9A-Za-z])[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    (
        "mailgun-token",
        ("-",),
        r"(?<![0-9A-Za-z-])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9A-Za-z-])",
    ),
    ("facebook-token", ("|",), r"(?<!\d)\d{15,16}\|[A-Za-z0-9_-]{27}(?![\w-])"),
    ("okta-token", ("SSWS",), r"SSWS\s{1,3}(?P<secret>00[A-Za-z0-9_-]{38,42})"),
    ("yandex-token", ("t1.",), r"(?<![\w.])t1\.[A-Za-z0-9_=-]{8,400}\.[A-Za-z0-9_=-]{60,120}"),
    (
        "openai-token",
        ("T3BlbkFJ",),
        r"(?<![\w-])sk-[A-Za-z0-9_-]{20,110}T3BlbkFJ[A-Za-z0-9_-]{20,110}",
    ),
    ("salesforce-token", ("00D",), r"(?<!\w)00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{60,130}"),
    (
        "authorization",
        ("uthorization", "UTHORIZATION"),
        (
            r"(?:[Aa]uthorization|AUTHORIZATION)[\"'`*]{0,3}\s{0,3}[:=]\s{0,3}[\"'`]{0,3}[Bb]asic\s{1,3}"
            r"(?P<secret>[A-Za-z0-9+/_-]{6,400}={0,2})"
        ),
    ),
    (
        "authorization",
        ("earer ", "EARER "),
        r"\b(?:[Bb]earer|BEARER)\s{1,3}[\"'`]{0,2}(?P<secret>[A-Za-z0-9._~+/-]{12,2000}={0,2})",
    ),
    (
        "authorization",
        ("uthorization", "UTHORIZATION"),
        (
            r"(?:[Aa]uthorization|AUTHORIZATION)[\"'`*]{0,3}\s{0,3}[:=]\s{0,3}[\"'`]{0,3}"
            r"(?:[A-Za-z][\w-]{1,20}\s{1,3}){0,2}"
            r"(?:[A-Za-z-]{1,20}=[\"'])?(?P<secret>(?!https?:)[A-Za-z0-9._~+/:-]{12,2000}={0,2})"
        ),
    ),
    (
        "session-cookie",
        ("ookie",),
        (
            r"(?:Set-)?[Cc]ookie:\s{0,3}(?:[\w.-]{1,40}=[^;\s\0]{0,80};\s{0,2}){0,6}"
            r"[\w.-]{0,20}(?:sess|sid|auth|token|SESS|SID|remember|jwt)[\w.-]{0,20}="
            r"(?P<secret>[A-Za-z0-9._%+/=:|-]{12,2000})"
        ),
    ),
    (
        "putty-key",
        ("PuTTY-User-Key-File",),
        (
            r"PuTTY-User-Key-File-\d(?:[^\n\0]{0,400}\n){1,60}?Private-Lines:[^\n]{0,20}\n"
            r"(?P<secret>(?:[ \t>]{0,12}[A-Za-z0-9+/=]{4,80}\r?\n?){1,200})"
        ),
    ),
    (
        "wireguard-key",
        ("PrivateKey", "PresharedKey"),
        r"(?:PrivateKey|PresharedKey)\s{0,3}=\s{0,3}(?P<secret>[A-Za-z0-9+/]{42,44}=?)",
    ),
    (
        "password-hash",
        ("$",),
        (
            r"(?<![A-Za-z0-9_])(?:argon2|bcrypt(?:_sha256)?\$?)?\$"
            r"(?:2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}"
            r"|argon2(?:id|i|d)\$(?:v=\d{1,3}\$)?m=\d{1,9},t=\d{1,9},p=\d{1,9}(?:,\w{1,9}=[^$,\s]{1,40}){0,3}"
            r"\$[A-Za-z0-9+/=]{8,120}\$[A-Za-z0-9+/=]{16,200}"
            r"|(?:1|5|6|8|9|apr1|sha1|md5)\$(?:(?:rounds=)?\d{1,9}\$)?[^\s$:\0]{1,32}\$[./A-Za-z0-9]{20,100}"
            r"|(?:y|gy|7)\$[./A-Za-z0-9]{1,90}\$(?:[./A-Za-z0-9]{1,90}\$)?[./A-Za-z0-9]{40,50}"
            r"|[PHS]\$[./A-Za-z0-9]{28,60}"
            r"|bcrypt-sha256\$[^\s$\0]{1,40}\$[./A-Za-z0-9]{20,30}\$[./A-Za-z0-9]{28,40}"
            r"|(?:pbkdf2(?:-sha\d{1,3})?|scrypt|p5k2|pbkdf2_sha\d{1,3})\$[^\s$\0]{1,40}\$[./A-Za-z0-9+=]{4,100}"
            r"\$[./A-Za-z0-9+=]{16,200})(?![A-Za-z0-9])"
        ),
    ),
    (
        "password-hash",
        ("pbkdf2", "PBKDF2", "scrypt", "sha1$", "sha256$", "sha512$", "md5$"),
        (
            r"(?<![\w$])(?:(?:pbkdf2|scrypt)[_:][\w:]{1,40}|grub\.pbkdf2\.sha512\.\d{1,9}|sha1|sha256|sha512|md5)"
            r"(?:\$\d{1,9})?[$.][A-Za-z0-9+/=.]{4,300}[$.][A-Za-z0-9+/=]{20,300}"
        ),
    ),
    (
        "password-hash",
        ("{",),
        (
            r"\{(?:S?SHA(?:-?\d{3})?|SMD5|MD5|PBKDF2(?:-SHA\d{1,3})?|CRYPT|ARGON2|x-\w{1,16})\}"
            r"(?:\d{1,9}\$)?[A-Za-z0-9+/=.$,]{24,300}"
        ),
    ),
    (
        "password-hash",
        ("SCRAM-SHA-",),
        r"SCRAM-SHA-\d{1,3}\$\d{1,9}:[A-Za-z0-9+/=]{8,80}\$[A-Za-z0-9+/=]{20,120}:[A-Za-z0-9+/=]{20,120}",
    ),
    ("password-hash", ("*",), r"\*(?<![\w*]\*)[0-9A-F]{40}(?![\w*])"),
    ("password-hash", (":::",), r"\w:\d{1,9}:(?P<secret>[0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::"),
    (
        "framework-key",
        ("_KEY", "_SALT"),
        (
            r"define\(\s{0,4}['\"](?:(?:SECURE_)?AUTH|LOGGED_IN|NONCE|WP_CACHE)_(?:KEY|SALT)(?:_SALT)?['\"]\s{0,12},"
            r"\s{0,12}(?:'(?P<secret>[^'\n\0]{20,200})'|\"[^\"\n\0]{20,200}\")"
        ),
    ),
    (
        "framework-key",
        ("ationKey=", "ptionKey="),
        r"(?:validation|decryption)Key=[\"'](?P<secret>[0-9A-Fa-f]{32,200})",
    ),
    (
        "framework-key",
        ("crypt",),
        (
            r"['\"]crypt['\"]\s{0,4}=>\s{0,4}(?:\[|array\()\s{0,40}['\"]key['\"]\s{0,4}=>"
            r"\s{0,4}['\"](?P<secret>[^'\"\n\0]{16,200})"
        ),
    ),
    ("framework-key", ("django-insecure-",), r"django-insecure-[^\s'\"\0]{20,100}"),
    (
        "framework-key",
        ("base64:",),
        (
            r"APP_(?:PREVIOUS_)?KEYS?\s{0,2}[:=]\s{0,2}['\"]?"
            r"(?P<secret>base64:[A-Za-z0-9+/]{40,90}={0,2})"
        ),
    ),
    (
        "password",
        ("machine", "default"),
        (
            r"[md](?<!\w[md])(?:achine[ \t]{1,8}[^\s\0]{1,200}|efault)(?:\s{1,8}(?:login|account"
            r"|user)\s{1,8}[^\s\0]{1,200}){0,2}"
            r"\s{1,8}(?:password|passwd)\s{1,8}(?P<secret>[^\s\0]{3,200})"
        ),
    ),
    (
        "password",
        (":",),
        (
            r"(?:^|\n)[ \t>]{0,4}[\w.*-]{1,100}:(?:\d{2,5}"
            r"|\*):[\w*-]{1,60}:[\w.@*-]{0,59}[A-Za-z][\w.@*-]{0,59}:"
            r"(?P<secret>(?:[^\s:\\\0]|\\.){4,100})(?=\r?\n|$)"
        ),
    ),
    (
        "password",
        ("mysql", "mariadb"),
        (
            r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mysqlimport)\b[^\n\0|;]{0,80}?"
            r"\s-p(?P<secret>[^\s\0\"'`;|]{4,80})"
        ),
    ),
    (
        "password",
        (" -p", " -a", " -w", " -P"),
        (
            r"\b(?:sshpass|redis-cli|mosquitto_\w{3}|mongo(?:sh|dump)?|ldap\w{3,8}|docker login|"
            r"podman login|"
            r"helm|smbclient|7z|unzip|zip|openssl|az login|oc login"
            r"|sqlcmd|psql|cqlsh|influx|ipmitool|rdesktop|[Pp]s[Ee]xec\w{0,2})\b"
            r"[^\n\0|;]{0,80}?"
            r"\s-[pawP][ =]?(?P<quote>[\"']?)(?P<secret>[^\s\0\"'`;|-][^\s\0\"'`;|]{5,80})"
        ),
    ),
    (
        "password",
        ("/p:", "/P:"),
        (
            r"\b(?:xfreerdp|wfreerdp|mstsc|net use|cmdkey)\b[^\n\0]{0,120}?"
            r"\s/[pP](?:ass)?:[\"']?(?P<secret>[^\s\0\"']{4,100})"
        ),
    ),
    (
        "password",
        ("lftp ",),
        r"\blftp\b[^\n\0]{0,60}?\s-u\s{0,2}[\"']?[\w.@-]{1,60},(?P<secret>[^\s\0\"']{4,100})",
    ),
    (
        "password",
        ("http ", "https ", "xh "),
        r"\b(?:https?|xh)\s(?:[^\n\0]{0,60}\s)?-a\s{0,2}[\"']?[\w.@-]{1,60}:(?P<secret>[^\s\0\"']{4,100})",
    ),
    (
        "password",
        ("snmp",),
        r"\bsnmp\w{2,10}\b[^\n\0]{0,100}?\s-[AX]\s{0,2}[\"']?(?P<secret>[^\s\0\"'-][^\s\0\"']{5,80})",
    ),
    (
        "password",
        ("exec", "secretsdump", "winrm"),
        (
            r"\b(?:impacket-)?(?:psexec|wmiexec|smbexec|atexec|secretsdump)(?:\.py)?\s[^\n\0]{0,60}?"
            r"[\w.-]{1,40}:(?P<secret>[^\s\0\"'@]{4,80})@"
        ),
    ),
    (
        "password",
        ("<<<",),
        (
            r"\b(?:kinit|vncpasswd|cryptsetup|sudo|su|passwd|chpasswd|ssh-add|login)\b[^\n\0]{0,80}?"
            r"<<<\s{0,3}[\"']?(?:[\w.-]{1,40}:)?(?P<secret>[^\s\0\"'$]{5,100})"
        ),
    ),
    (
        "password",
        ("mysqladmin",),
        r"\bmysqladmin\b[^\n\0]{0,80}?\spassword\s{1,3}[\"']?(?P<secret>[^\s\0\"']{4,100})",
    ),
    (
        "password",
        ("rclone obscure",),
        r"rclone obscure\s{1,3}[\"']?(?P<secret>[^\s\0\"']{4,100})",
    ),
    (
        "password",
        ("htpasswd",),
        r"\bhtpasswd\s{1,3}-\w{0,4}b\w{0,4}\s{1,3}\S{1,100}\s{1,3}\S{1,60}\s{1,3}(?P<secret>[^\s\0]{4,100})",
    ),
    (
        "password",
        ("openssl",),
        r"\bopenssl\b[^\n\0|;]{0,120}?\s-k\s{1,3}[\"']?(?P<secret>[^\s\0\"'`;|-][^\s\0\"'`;|]{3,80})",
    ),
    (
        "password",
        ("SecureString",),
        (r"[\"'](?P<secret>[^\"'\s\0$]{4,100})[\"']\s{0,3}\|\s{0,3}ConvertTo-SecureString\b"),
    ),
    (
        "password",
        ("SecureString",),
        r"ConvertTo-SecureString\s{1,3}(?:-String\s{1,3})?[\"'](?P<secret>[^\"'\n\0]{4,100})[\"']",
    ),
    (
        "password",
        (">",),
        (
            r"\b(?i:(?:set)?user)\s{1,3}[\w.@-]{1,40}\s{1,3}(?:(?:on|off|reset\w{0,6}|[~&+][^\s\0]{1,40})\s{1,3}){1,6}"
            r">(?P<secret>[^\s\0>=]{6,100})"
        ),
    ),
    (
        "password",
        ("dentified", "DENTIFIED"),
        r"(?i:identified\s{1,3}with\s{1,3}\S{1,40}\s{1,3}(?:by|as)\s{1,3})['\"](?P<secret>[^'\"\n\0]{4,100})['\"]",
    ),
    (
        "password",
        ("sp_addlogin", "sp_password"),
        r"sp_(?:addlogin|password)\s[^,\n\0]{1,60},\s{0,3}N?'(?P<secret>[^'\n\0]{4,100})'",
    ),
    (
        "password",
        ("-u", "--user", "--proxy-user"),
        r"(?:\s-u[ ]?|--(?:proxy-)?user[ =])[\"']?[\w.@-]{1,40}:(?P<secret>[^\s\0\"'`]{4,100})",
    ),
    (
        "password",
        ("-U", "--user="),
        r"\s(?:-U|--user=)[ ]?[\"']?[\w.@\\-]{1,40}%(?P<secret>[^\s\0\"'`]{6,100})",
    ),
    ("password", ("/user:",), r"/user:[\w.@\\-]{1,60}[ ]{1,3}(?P<secret>[^\s\0\"'`/*]{6,80})"),
    (
        "password",
        ("sqlplus", "rman ", "expdp", "impdp", "sqlldr", ":thin:"),
        (
            r"(?:\b(?:sqlplus|rman|expdp|impdp|sqlldr)\b[^\n\0@]{0,60}?\s|:thin:)[\"']?[\w$#]{1,30}/"
            r"(?P<secret>[^\s\0\"'`/@]{4,80})@"
        ),
    ),
    (
        "password",
        ("echo ", "printf "),
        (
            r"\b(?:echo|printf)\s{1,3}(?:-\w{1,3}\s{1,3})?[\"']?(?:[\w.-]{1,40}:)?"
            r"(?P<secret>[^\s\0\"'`|:$]{6,80})[\"']?\s{0,3}\|\s{0,3}"
            r"(?:sudo\s{1,3}-S|(?:sudo\s{1,3})?\w{0,4}passwd|[^\n\0|]{1,60}-stdin)"
        ),
    ),
    (
        "password",
        ("send ",),
        (
            r"(?:assword|assphrase)[^\n\0]{0,12}\n\s{0,8}send\s{1,3}(?:--\s{1,3})?[\"']"
            r"(?P<secret>[^\s\0\"'\\]{6,80})"
        ),
    ),
    (
        "password",
        ("]:",),
        r"(?:^|\n)\[[\w.-]{1,80}\]:\d{2,5}[ \t]{1,8}[\w.@+-]{1,60}:(?P<secret>[^\s\0]{6,100})",
    ),
    (
        "password",
        (" * ",),
        (
            r"(?:^|\n)[\"']?[\w.@-]{1,60}[\"']?[ \t]{1,8}\*[ \t]{1,8}[\"']?"
            r"(?P<secret>[^\s\0\"']{8,80})"
            r"[\"']?[ \t]{1,8}\*[ \t]{0,4}(?=\r?\n|$)"
        ),
    ),
    (
        "password",
        ("ickServ", "ickserv", "NICKSERV"),
        (
            r"[Nn]ick[Ss]erv\s{1,3}(?i:identify|register)\s{1,3}(?:\w{1,30}\s{1,3}(?=\S))?"
            r"(?P<secret>[^\s\0]{6,80})"
        ),
    ),
    ("password", ("pass:",), r"\bpass:(?P<secret>[^\s\0\"'`]{5,80})"),
)

MIN_WORD = {
    "$": 25,
    "{": 29,
    ":": 12,
    "*": 41,
    "-": 50,
    ".": 59,
    "|": 43,
    "/1": 47,
    "-us": 36,
    "pat": 82,
}
"""Needles of any text count only with a word as long as the shortest such secret."""

_PATTERNS = tuple((kind, needles, Pattern(pattern)) for kind, needles, pattern in ROWS)

_NEEDLES = tuple(dict.fromkeys(needle for _kind, needles, _pattern in ROWS for needle in needles))

WORDED = frozenset({"authorization", "session-cookie", "password"})
"""Shapes whose secret could be a plain word; the others say enough by their form."""


def find(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every shape."""
    for kind, pattern in _choose_patterns(text):
        for match in pattern.finditer(text):
            group = "secret" if "secret" in match.re.groupindex else 0
            secret = match[group].rstrip("." if kind != "putty-key" else "\r\n")
            if _is_real(kind, secret):
                start = match.start(group)
                yield kind, start, start + len(secret)
    if any(name in text for name in CALLS):
        yield from _find_arguments(text)
    for label, start, end in find_key_blocks(text):
        if label == PRIVATE_KEY:
            yield label, start, end


CALLS = (
    "uth(",
    "uth=(",
    "uth = (",
    "UTH(",
    "ogin(",
    "redential(",
    "redentials(",
    "onnect(",
    "onnection(",
)
"""The ends of the names of calls that log in."""
_CALL = Pattern(
    r"(?:uth(?: ?= ?)?|UTH|ogin|redentials?|onnect(?:ion)?)\("
    r"(?P<arguments>(?:[^()\n\0\"']{0,40}(?:\"[^\"\n\0]{0,100}\"|'[^'\n\0]{0,100}')){2,5})"
)
_ARGUMENT = Pattern(r"(?:\"([^\"]{8,100})\"|'([^']{8,100})')")


def _find_arguments(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of passwords behind a user's name in a call that logs in."""
    for call in _CALL.finditer(text):
        for match in _ARGUMENT.finditer(text, call.start("arguments"), call.end()):
            group = match.lastindex or 0
            if looks_like_password(match[group]):
                yield "password", *match.span(group)
                break


def _choose_patterns(text: str) -> list[tuple[str, Pattern]]:
    """Return the kinds that a text may hold, with their patterns."""
    longest = max(map(len, text.split()), default=0)
    there = {needle for needle in _NEEDLES if needle in text and longest >= MIN_WORD.get(needle, 0)}
    if not there:
        return []
    return [
        (kind, pattern) for kind, needles, pattern in _PATTERNS if not there.isdisjoint(needles)
    ]


def _is_real(kind: str, secret: str) -> bool:
    if kind == "password-hash":
        return len(set(secret[-20:])) > 5
    if is_filler(secret):
        return False
    if kind not in WORDED:
        return True
    if kind == "password":
        return is_typed(secret, 4, sure=True) and not secret.isdigit()
    has_digit = any(char.isdigit() for char in secret)
    return (has_digit or (not secret.islower() and len(secret) > 15)) and not is_wordlike(secret)


HARMLESS = read_list("url_passwords")

_USERINFO = Pattern(
    r"://(?P<user>[^\s:/@\"'`<>]{0,100})"
    r"(?::(?P<password>[^\s\"'`<>\x00]{1,200}))?@(?=[A-Za-z0-9\[$<{])"
)
_EXAMPLE_HOST = Pattern(
    r"(?:[\w-]{1,63}\.){0,5}(?:example\.(?:com|org|net)|\w{1,63}\.example)(?![\w.-])"
)
"""Hosts that are nobody's (RFC 2606)."""
_PORT = Pattern(r"\d{1,5}(?:[/?#]|$)")
_PLACEHOLDER = Pattern(r"\$\{|\$[A-Za-z_]\w*$|\$\(|<|\{|%[A-Za-z_(]+|\[|\*")


def has_userinfo(text: str, _lower: str = "") -> bool:
    """Return whether there may be an address with a user in it."""
    return "://" in text and "@" in text


def find_userinfo(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the secret part of addresses."""
    for match in _USERINFO.finditer(text):
        user, password = match["user"], match["password"]
        if password is None:
            if is_dense(user) or is_hex_or_uuid(user):
                yield "url-password", *match.span("user")
            continue
        port = _PORT.match(password)
        if port and "@" not in password[: port.end()]:
            continue
        slash = password.find("/")
        cut = password.rfind("@", 0, slash) if slash > 0 else password.rfind("@")
        if cut > 0 and "@" in password and slash > cut:
            password = password[:cut]
        is_example = _EXAMPLE_HOST.match(text, match.end()) and not is_dense(password, 12)
        if is_dense(user, 20) or is_hex_or_uuid(user):
            yield "url-password", *match.span("user")
        if _is_real_password(user, password) and not is_example:
            start = match.start("password")
            yield "url-password", start, start + len(password)


def _is_real_password(user: str, password: str) -> bool:
    """Return whether a password in an address is more than a placeholder."""
    lower = password.lower()
    if lower in HARMLESS or lower == user.lower() or lower in PLACEHOLDER_WORDS:
        return False
    if password[0] in "$<{%[*" and _PLACEHOLDER.match(password):
        return False
    return not is_filler(password) and len(set(password)) > 2
